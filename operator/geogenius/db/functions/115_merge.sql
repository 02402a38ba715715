-- Refuses a staging table that has not as many rows as were written to it: it is unlogged, so a crash of the server
-- or a change to its standby empties it without a word to the executor. Locks: none. Errors: 55000 staging_lost.
create or replace function assert_staged(staging text, written bigint) returns void
language plpgsql stable set search_path from current as $$
declare
    found_rows bigint;
begin
    if has_own_table(staging) then
        execute format('select count(*) from %I', staging) into found_rows;
    end if;
    if found_rows is distinct from written then
        perform refuse('55000', 'staging_lost', format(
            '%s of %s staged rows are left: the database crashed or changed to another server meanwhile',
            coalesce(found_rows, 0), written
        ));
    end if;
end
$$;

-- Builds the tables of the release from the `staged` rows of the staging table, set-wise. Repeating it builds them
-- anew. staged = areas + merged (rows that joined the area of an earlier source) + rejects of the merge;
-- boundaries_unused are usable ones that an earlier source's boundary stands in for.
-- Locks: those of the fence, the tables. Errors: those of the fence; 55000 staging_lost.
create or replace function merge_staging(run uuid, executor uuid, staged bigint)
returns table (
    areas bigint, boundaries bigint, repaired bigint, rejected bigint, merged bigint, boundaries_unused bigint
)
language plpgsql security definer set search_path from current set work_mem = '64MB' as $$
declare
    target uuid := assert_import_write(run, executor, array['normalizing']::run_state[]);
    collection_key text := (
        select c.key from release r join collection c on c.id = r.collection_id where r.id = target
    );
    staging text := staging_table(run);
begin
    perform assert_staged(staging, staged);
    execute format('analyze %I (authority, area_type, code)', staging);
    perform repair_staged(staging);
    perform find_repeated(run, staging);
    perform unite_staged(staging);
    perform reject_staged(run);
    perform create_release_tables(target, collection_key);
    perform fill_areas(staging, target, collection_key);
    perform fill_boundaries(staging, target, collection_key);
    perform fill_names_and_codes(staging, target, collection_key);
    execute format(
        'select (select count(*) from %I), count(*), count(*) filter (where b.repaired) from %I b',
        release_table('release_area', target), release_table('boundary', target)
    ) into areas, boundaries, repaired;
    rejected := (select count(*) from import_reject x where x.run_id = run);
    merged := (select count(*) from pg_temp.repeated d where d.occurrence = 1 and d.contribution > 1);
    boundaries_unused := (select coalesce(sum(greatest(u.boundaries_unused, 0)), 0) from pg_temp.united u);
    return next;
end
$$;
