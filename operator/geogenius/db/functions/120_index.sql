-- Makes one index of a release, or finds it. The name is that of the table and a suffix. Locks: the table.
create or replace function index_release_table(parent text, release uuid, suffix text, definition text) returns void
language plpgsql set search_path from current as $$
begin
    execute format(
        'create %sindex if not exists %I on %I %s',
        case when suffix in ('key', 'number') then 'unique ' else '' end,
        release_table(parent, release) || '_' || suffix, release_table(parent, release), definition
    );
end
$$;

-- Indexes and statistics of the tables of a release, before anybody reads them; each serves the question named beside
-- it. Repeating it adds what is missing. Locks: those of the fence, the tables.
-- Errors: those of the fence; 55000 not_merged.
create or replace function index_release(run uuid, executor uuid) returns void
language plpgsql security definer set search_path from current set maintenance_work_mem = '256MB' as $$
declare
    target uuid := assert_import_write(run, executor, array['indexing']::run_state[]);
    wanted record;
begin
    perform assert_merged(target);
    for wanted in
        select * from (values
            ('release_area', 'key', '(area_key)'), -- codes, hierarchy, joins of users
            ('release_area', 'number', '(area_number)'), -- every question
            ('release_area', 'centroid', 'using gist (centroid)'), -- areas_near without a boundary
            ('release_area', 'name', 'using gin (name gin_trgm_ops)'), -- search_areas
            ('boundary', 'number', '(area_number)'), -- views, shares of an area
            ('boundary', 'geom', 'using gist (geom)'), -- places
            ('boundary_part', 'geom', 'using gist (geom)'), -- places
            ('area_name', 'area', '(area_number)'), -- views
            ('area_name', 'name', 'using gin (name gin_trgm_ops)'), -- search_areas
            ('area_code', 'area', '(area_number)'), -- every match
            ('area_code', 'value', '(code_type, code_value)'), -- areas_by_code
            ('relation', 'parent', '(parent_number, child_number)'), -- children_of
            ('relation', 'child', '(child_number, parent_number)') -- ancestors_of
        ) i (parent, suffix, definition)
    loop
        perform index_release_table(wanted.parent, target, wanted.suffix, wanted.definition);
    end loop;
    execute (
        select 'analyze ' || string_agg(quote_ident(release_table(parent, target)), ', ')
        from unnest(release_parents()) parent
    );
end
$$;
