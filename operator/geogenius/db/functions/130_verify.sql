-- Which optional gates of a run its release does not pass, one sentence each. `counts`: areas by type. Reads only.
-- The shrink is measured against the release that readers see now, as its own verification counted it.
create or replace function gate_failures(run import_run, counts jsonb) returns setof text
language sql stable set search_path from current as $$
    select format('%s areas of type %s, at least %s are required',
        coalesce((counts ->> m.key)::bigint, 0), m.key, m.value)
    from jsonb_each_text(run.gates -> 'minimum_areas') m
    where coalesce((counts ->> m.key)::bigint, 0) < m.value::bigint
    union all
    select format('no area of type %s, which is required', t)
    from jsonb_array_elements_text(run.gates -> 'required_types') t
    where not counts ? t
    union all
    select format('%s areas of type %s, %s in the published release: it may shrink by %s %% at most',
        coalesce((counts ->> old.key)::bigint, 0), old.key, old.value, run.gates ->> 'max_shrink_percent')
    from publication p
    join release r on r.id = run.release_id and r.collection_id = p.collection_id
    join import_run i on i.release_id = p.release_id and i.state = 'completed'
    cross join jsonb_each_text(coalesce(i.verification -> 'areas_by_type', count_areas(p.release_id))) old
    where coalesce((counts ->> old.key)::bigint, 0)
        < old.value::bigint * (1 - (run.gates ->> 'max_shrink_percent')::numeric / 100)
$$;

-- {ok, failures[], area_count, boundary_count, areas_by_type} of a release whose tables are there. Reads only.
create or replace function verification_report(release uuid, failures text[], counts jsonb) returns jsonb
language plpgsql stable set search_path from current as $$
declare
    boundaries bigint;
begin
    execute format('select count(*) from %I', release_table('boundary', release)) into boundaries;
    return jsonb_build_object(
        'ok', cardinality(failures) = 0, 'failures', to_jsonb(failures), 'areas_by_type', counts,
        'area_count', (select coalesce(sum(v::bigint), 0) from jsonb_each_text(counts) c (k, v)),
        'boundary_count', boundaries
    );
end
$$;

-- The gate before completion, kept on the run. No writing function is permitted in this phase or later, so what was
-- verified is what completes. Repeating it verifies again.
-- Locks: those of the fence, run row. Errors: those of the fence; 55000 not_merged.
create or replace function verify_release(run uuid, executor uuid) returns jsonb
language plpgsql security definer set search_path from current as $$
declare
    target uuid := assert_import_write(run, executor, array['verifying']::run_state[]);
    counts jsonb;
    verified import_run;
    report jsonb;
begin
    perform assert_merged(target);
    counts := count_areas(target);
    select * into verified from import_run where id = run;
    report := verification_report(
        target,
        array(
            select * from release_faults(target)
            union all select * from release_strays(target)
            union all select * from release_unindexed(target)
            union all select * from gate_failures(verified, counts)
        ),
        counts
    );
    update import_run set verification = report where id = run;
    return report;
end
$$;

-- Verifies a complete release again, without gates and without keeping anything: what is there, is it sound?
-- Locks: none but those of reading. Errors: those of check_readable.
create or replace function verify_release(wanted uuid) returns jsonb
language plpgsql stable security definer set search_path from current as $$
begin
    perform check_readable(wanted);
    return verification_report(
        wanted, array(select * from release_faults(wanted) union all select * from release_strays(wanted)),
        count_areas(wanted)
    );
end
$$;
