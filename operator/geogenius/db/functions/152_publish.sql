-- Points readers of a collection at a release and logs it; false if they see it already, and then nothing happens.
-- Locks: publication row, events (the caller holds the publication lock).
create or replace function move_pointer(target uuid, how text) returns boolean
language plpgsql set search_path from current as $$
declare
    home uuid := (select r.collection_id from release r where r.id = target);
    seen uuid := (select p.release_id from publication p where p.collection_id = home);
    moment timestamptz;
begin
    if seen = target then
        return false;
    end if;
    perform lock_events();
    -- A clock that was set back must not reorder the history, which release_at reads by time.
    moment := greatest(catalog_clock(), (select max(occurred_at) from publication_event where collection_id = home));
    insert into publication (collection_id, release_id, previous_release_id, published_at)
    values (home, target, seen, moment)
    on conflict (collection_id) do update
    set release_id = excluded.release_id, previous_release_id = excluded.previous_release_id,
        published_at = excluded.published_at;
    insert into publication_event (collection_id, release_id, previous_release_id, kind, occurred_at)
    values (home, target, seen, how, moment);
    return true;
end
$$;

-- Completes a run from phase publishing and publishes its release, or neither. A second call is refused: read the run.
-- Locks: publication, then finish_import. Errors: those of finish_import.
create or replace function publish_import(run uuid, executor uuid) returns uuid
language plpgsql security definer set search_path from current as $$
declare
    target uuid;
begin
    perform lock_publication(c.key)
    from import_run i join release r on r.id = i.release_id join collection c on c.id = r.collection_id
    where i.id = run;
    target := finish_import(run, executor, 'publishing', '{}');
    perform move_pointer(target, 'published');
    return target;
end
$$;

-- The pointer of a collection and whether this call moved it: the answer of publish_release and rollback_publication.
create or replace function publication_answer(wanted text, moved boolean)
returns table (
    collection_key text, release_id uuid, release_key text, previous_release_id uuid, published_at timestamptz,
    moved boolean
)
language sql stable set search_path from current as $$
    select c.key, p.release_id, r.release_key, p.previous_release_id, p.published_at, publication_answer.moved
    from collection c join publication p on p.collection_id = c.id join release r on r.id = p.release_id
    where c.key = wanted
$$;

-- Publishes a completed release. A release that readers see already stays as it is: no event, and roll back still goes
-- where it went.
-- Locks: publication, publication row, events.
-- Errors: 23503 unknown_release; 55000 release_retired, release_live, release_incomplete.
create or replace function publish_release(release uuid)
returns table (
    collection_key text, release_id uuid, release_key text, previous_release_id uuid, published_at timestamptz,
    moved boolean
)
language plpgsql security definer set search_path from current as $$
declare
    wanted release;
    home text := (select c.key from release r join collection c on c.id = r.collection_id where r.id = release);
begin
    if home is null then
        perform refuse('23503', 'unknown_release', format('no release %s', release));
    end if;
    perform lock_publication(home);
    select * into wanted from release r where r.id = release;
    if wanted.retired_at is not null then
        perform refuse('55000', 'release_retired', format('release %s of %s is retired', wanted.release_key, home));
    elsif exists (select from import_run_lease l where l.release_id = release) then
        perform refuse('55000', 'release_live', format('release %s of %s is being imported', wanted.release_key, home));
    elsif wanted.completed_at is null then
        perform refuse('55000', 'release_incomplete',
            format('release %s of %s is not complete', wanted.release_key, home));
    end if;
    moved := move_pointer(release, 'published');
    return query select a.* from publication_answer(home, publish_release.moved) a;
end
$$;

-- Points readers at the release they saw before; a second roll back goes forward again. So that a repeated call cannot
-- do that by accident, `leaving` says which release readers are to leave; null leaves whatever they see.
-- Locks: publication, publication row, events.
-- Errors: 23503 unknown_collection; 23514 no_previous_release; 55000 pointer_moved.
create or replace function rollback_publication(wanted text, leaving uuid)
returns table (
    collection_key text, release_id uuid, release_key text, previous_release_id uuid, published_at timestamptz,
    moved boolean
)
language plpgsql security definer set search_path from current as $$
declare
    held publication;
begin
    perform require_collection(wanted);
    perform lock_publication(wanted);
    select p.* into held from publication p join collection c on c.id = p.collection_id where c.key = wanted;
    if leaving is not null and held.release_id is distinct from leaving then
        perform refuse('55000', 'pointer_moved',
            format('readers of %s do not see release %s any more', wanted, leaving));
    elsif held.previous_release_id is null then
        perform refuse('23514', 'no_previous_release', format('%s has no previous release to go back to', wanted));
    end if;
    moved := move_pointer(held.previous_release_id, 'rolled_back');
    return query select a.* from publication_answer(wanted, rollback_publication.moved) a;
end
$$;
