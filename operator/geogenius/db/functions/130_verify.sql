-- What is wrong with the tables of a release: one sentence per kind of fault. Reads only.
create or replace function release_failures(release uuid) returns setof text
language plpgsql stable set search_path from current as $$
begin
    return query execute format($sql$
        with area as (
            select a.area_number, w.requires_geometry, w.area_type_id is null as strange_type,
                g.authority_id is null as strange_authority
            from %I a
            left join (area_type t join release_area_type w on w.area_type_id = t.id and w.release_id = $1)
                on t.key = a.area_type
            left join (authority k join release_authority g on g.authority_id = k.id and g.release_id = $1)
                on k.key = a.authority
        ), fault (many, sentence) as (
            select (not exists (select from area))::integer, 'the release has no areas'
            union all
            select count(*), count(*) || ' areas lack the boundary that their type requires' from area a
            where a.requires_geometry and not exists (select from %I b where b.area_number = a.area_number)
            union all
            select count(*), count(*) || ' boundaries are not valid' from %2$I b where not ST_IsValid(b.geom)
            union all
            select count(*), count(*) || ' areas are of a type that the release does not declare' from area
            where strange_type
            union all
            select count(*), count(*) || ' areas are of an authority that the release does not declare' from area
            where strange_authority
        )
        select sentence from fault where many > 0
    $sql$, release_table('release_area', release), release_table('boundary', release)) using release;
end
$$;

-- The gate before completion: {ok, failures[], area_count, boundary_count}, kept on the run. No writing function is
-- permitted in this phase or later, so what was verified is what completes. Repeating it verifies again.
-- Locks: those of the fence, run row. Errors: those of the fence.
create or replace function verify_release(run uuid, executor uuid) returns jsonb
language plpgsql set search_path from current as $$
declare
    target uuid := assert_import_write(run, executor, array['verifying']::run_state[]);
    failures jsonb := (select coalesce(jsonb_agg(f), '[]') from release_failures(target) f);
    report jsonb;
begin
    execute format(
        'select jsonb_build_object(''area_count'', (select count(*) from %I), ''boundary_count'', (select count(*) from %I))',
        release_table('release_area', target), release_table('boundary', target)
    ) into report;
    report := report || jsonb_build_object('ok', failures = '[]', 'failures', failures);
    update import_run set verification = report where id = run;
    return report;
end
$$;
