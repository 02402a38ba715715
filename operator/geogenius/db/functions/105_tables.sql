-- Makes the two empty tables of a release, standalone, in place of older ones. The CHECKs are what the partition
-- bounds will be, so that attaching them later scans nothing. Locks: the tables.
create or replace function create_release_tables(release uuid, collection_key text) returns void
language plpgsql set search_path from current as $$
declare
    parent text;
begin
    perform drop_release_tables(release);
    foreach parent in array array['release_area', 'boundary'] loop
        execute format($ddl$
            create table %I (
                like %I including constraints including compression,
                constraint collection_bound check (collection_key = %L),
                constraint release_bound check (release_id = %L::uuid)
            )
        $ddl$, release_table(parent, release), parent, collection_key, release);
    end loop;
end
$$;

-- Drops the tables of a release that was never completed. Locks: the tables.
create or replace function drop_release_tables(release uuid) returns void
language plpgsql set search_path from current as $$
begin
    execute format('drop table if exists %I, %I', release_table('release_area', release), release_table('boundary', release));
end
$$;
