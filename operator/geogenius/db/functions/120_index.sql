-- Indexes and statistics of the tables of a release, before anybody reads them. Repeating it adds what is missing.
-- Locks: those of the fence, the tables. Errors: those of the fence.
create or replace function index_release(run uuid, executor uuid) returns void
language plpgsql set search_path from current set maintenance_work_mem = '256MB' as $$
declare
    target uuid := assert_import_write(run, executor, array['indexing']::run_state[]);
    areas text := release_table('release_area', target);
    boundaries text := release_table('boundary', target);
begin
    execute format('create unique index if not exists %I on %I (area_key)', areas || '_key', areas);
    execute format('create unique index if not exists %I on %I (area_number)', areas || '_number', areas);
    execute format('create index if not exists %I on %I using gist (centroid)', areas || '_centroid', areas);
    execute format('create unique index if not exists %I on %I (area_number)', boundaries || '_number', boundaries);
    execute format('create index if not exists %I on %I using gist (geom)', boundaries || '_geom', boundaries);
    execute format('analyze %I', areas);
    execute format('analyze %I', boundaries);
end
$$;
