-- Fills the tables of a release from the staged rows that were not rejected. Locks: the tables.
create or replace function fill_release_tables(staging text, release uuid, collection_key text) returns void
language plpgsql set search_path from current as $$
declare
    areas text := release_table('release_area', release);
    kept text := format($sql$
        select s.*, area_key(s.authority, s.area_type, s.code) as area_key, coalesce(r.geom, s.geom) as final,
            r.id is not null as repaired, r.reason
        from %I s left join pg_temp.repaired r on r.id = s.id
        where (r.id is null or r.geom is not null) and not exists (select from pg_temp.repeated d where d.id = s.id)
    $sql$, staging);
begin
    execute format($sql$
        insert into %I (collection_key, release_id, area_number, area_key, authority, area_type, code, name,
            centroid, attributes, artifact, position)
        select $1, $2, row_number() over (order by k.area_key), k.area_key, k.authority, k.area_type, k.code, k.name,
            ST_PointOnSurface(k.final)::geography, k.attributes, k.artifact, k.position
        from (%s) k
    $sql$, areas, kept) using collection_key, release;
    execute format('analyze %I (area_key)', areas);
    execute format($sql$
        insert into %I (collection_key, release_id, area_number, geom, repaired, repair_reason)
        select $1, $2, a.area_number, k.final, k.repaired, k.reason
        from (%s) k join %I a on a.area_key = k.area_key
        where k.final is not null
    $sql$, release_table('boundary', release), kept, areas) using collection_key, release;
end
$$;

-- Refuses a staging table that has not as many rows as were written to it: it is unlogged, so a crash of the server
-- or a change to its standby empties it without a word to the executor. Locks: none. Errors: 55000 staging_lost.
create or replace function assert_staged(staging text, written bigint) returns void
language plpgsql stable set search_path from current as $$
declare
    found_rows bigint;
begin
    execute format('select count(*) from %I', staging) into found_rows;
    if found_rows is distinct from written then
        perform refuse('55000', 'staging_lost', format(
            '%s of %s staged rows are left: the database crashed or changed to another server meanwhile',
            found_rows, written
        ));
    end if;
end
$$;

-- Builds the tables of the release from the `staged` rows of the staging table, set-wise. Repeating it builds them anew.
-- Locks: those of the fence, the tables. Errors: those of the fence; 55000 staging_lost.
create or replace function merge_staging(run uuid, executor uuid, staged bigint)
returns table (areas bigint, boundaries bigint, repaired bigint, rejected bigint)
language plpgsql set search_path from current set work_mem = '64MB' as $$
declare
    target uuid := assert_import_write(run, executor, array['normalizing']::run_state[]);
    collection_key text := (select c.key from release r join collection c on c.id = r.collection_id where r.id = target);
    staging text := staging_table(run);
begin
    perform assert_staged(staging, staged);
    execute format('analyze %I', staging);
    perform repair_staged(staging);
    perform find_repeated(staging);
    perform reject_staged(run);
    perform create_release_tables(target, collection_key);
    perform fill_release_tables(staging, target, collection_key);
    execute format(
        'select (select count(*) from %I), count(*), count(*) filter (where b.repaired) from %I b',
        release_table('release_area', target), release_table('boundary', target)
    ) into areas, boundaries, repaired;
    rejected := (select count(*) from import_reject x where x.run_id = run);
    return next;
end
$$;
