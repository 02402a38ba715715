-- Retires old releases: of those that are complete, the published one and the `keep` - 1 newest others stay. Gives the
-- ids that were retired. Their tables stay attached until the sweep detaches them (ADR 0016); readers find them no
-- more. Candidates are never touched. Repeating it retires nothing more.
-- Locks: publication, release rows, publication row. Errors: 23503 unknown_collection; 22023 bad_keep.
create or replace function retire_releases(wanted text, keep integer) returns setof uuid
language plpgsql security definer set search_path from current as $$
declare
    home uuid := require_collection(wanted);
    retired uuid[];
begin
    if not coalesce(keep >= 1, false) then
        perform refuse('22023', 'bad_keep', format('keep must be at least 1, not %s', coalesce(keep::text, 'null')));
    end if;
    perform lock_publication(wanted);
    with old as (
        select r.id from release r
        where r.collection_id = home and r.completed_at is not null and r.retired_at is null
            and not exists (select from publication p where p.release_id = r.id)
        order by r.completed_at desc, r.created_at desc, r.id
        offset keep - 1
    ), changed as (
        update release r set retired_at = catalog_clock() from old where r.id = old.id returning r.id
    )
    select array_agg(id) into retired from changed;
    update publication set previous_release_id = null
    where collection_id = home and previous_release_id = any (retired);
    return query select unnest(retired);
end
$$;

-- Says that an area of a collection is no more, and which one took its place, if any; whatever releases contain it.
-- Repeating it keeps the first time and takes the new successor.
-- Locks: the row. Errors: 23503 unknown_collection; 22023 bad_successor.
create or replace function retire_area(wanted text, area text, successor text) returns void
language plpgsql security definer set search_path from current as $$
declare
    home uuid := require_collection(wanted);
begin
    if successor = area then
        perform refuse('22023', 'bad_successor', format('%s cannot succeed itself', area));
    end if;
    insert into area_retirement (collection_id, area_key, retired_at, successor_key)
    values (home, area, catalog_now(), successor)
    on conflict (collection_id, area_key) do update set successor_key = excluded.successor_key;
end
$$;

-- Takes back what retire_area said; false if nothing was said. Locks: the row. Errors: 23503 unknown_collection.
create or replace function restore_area(wanted text, area text) returns boolean
language plpgsql security definer set search_path from current as $$
declare
    home uuid := require_collection(wanted);
begin
    delete from area_retirement where collection_id = home and area_key = area;
    return found;
end
$$;
