-- Attaches one table of a release where readers find it, making the collection's partition first if it is missing.
-- Never CREATE TABLE ... PARTITION OF: that would lock out readers; attaching with matching CHECKs neither scans nor
-- waits.
-- Locks: root and collection partition (both SHARE UPDATE EXCLUSIVE: readers pass), the release's own table.
create or replace function attach_release_table(parent text, release uuid, collection collection) returns void
language plpgsql set search_path from current as $$
declare
    middle text := collection_table(parent, collection.id);
    leaf text := release_table(parent, release);
begin
    if not has_own_table(middle) then
        execute format('lock table %I in share update exclusive mode', parent);
    end if;
    if not has_own_table(middle) then
        execute format(
            $ddl$
                create table %I (
                    like %I including constraints including compression including defaults,
                    constraint collection_bound check (collection_key = %L)
                ) partition by list (release_id)
            $ddl$,
            middle, parent, collection.key
        );
        execute format('alter table %I attach partition %I for values in (%L)', parent, middle, collection.key);
    end if;
    execute format('alter table %I attach partition %I for values in (%L)', middle, leaf, release);
end
$$;

-- The name of the partition of a collection.
create or replace function collection_table(parent text, collection uuid) returns text
language sql immutable parallel safe as $$
    select parent || '_of_' || replace(collection::text, '-', '')
$$;

-- Attaches the tables of a release, always in the same order. Locks: those of attach_release_table.
create or replace function attach_release(release uuid) returns void
language plpgsql set search_path from current as $$
declare
    home collection;
begin
    select c.* into home from release r join collection c on c.id = r.collection_id where r.id = release;
    perform attach_release_table(parent, release, home) from unnest(release_parents()) parent;
end
$$;
