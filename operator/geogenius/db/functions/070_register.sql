-- Writes who defines codes and which types there are in a release that has none. Inserts in key order.
-- Locks: the rows (the caller holds release lock and collection row).
create or replace function register_policy(release uuid, wanted jsonb) returns void
language plpgsql set search_path from current as $$
declare
    home uuid := (select r.collection_id from release r where r.id = release);
begin
    insert into authority (collection_id, key)
    select home, a ->> 'key' from jsonb_array_elements(wanted -> 'authorities') a order by 2
    on conflict do nothing;
    insert into area_type (collection_id, key)
    select home, t ->> 'key' from jsonb_array_elements(wanted -> 'area_types') t order by 2
    on conflict do nothing;
    insert into release_authority (release_id, authority_id, name)
    select release, known.id, a ->> 'name'
    from jsonb_array_elements(wanted -> 'authorities') a
    join authority known on known.collection_id = home and known.key = a ->> 'key';
    insert into release_area_type (release_id, area_type_id, rank, requires_geometry)
    select release, known.id, (t ->> 'rank')::integer, (t ->> 'requires_geometry')::boolean
    from jsonb_array_elements(wanted -> 'area_types') t
    join area_type known on known.collection_id = home and known.key = t ->> 'key';
end
$$;

-- Writes a new release with its policy. Locks: the rows (prepare_import holds release lock and collection row).
create or replace function register_release(wanted jsonb, home uuid) returns uuid
language plpgsql set search_path from current as $$
declare
    made uuid;
begin
    insert into release (collection_id, release_key, manifest, created_at)
    values (home, wanted ->> 'release', wanted, catalog_now()) returning id into made;
    perform register_policy(made, wanted);
    return made;
end
$$;

-- What a claim leaves open. Seconds, but for the counts.
create or replace function claim_defaults() returns jsonb
language sql immutable set search_path from current as $$
    select jsonb_build_object(
        'publish', false, 'stale_after_seconds', 900, 'reject_limit', 0, 'gates', '{}'::jsonb,
        'launch_deadline_seconds', 600, 'start_deadline_seconds', 1800,
        'active_deadline_seconds', 21600, 'stall_deadline_seconds', 3600,
        'retry_limit', 0, 'retry_backoff_seconds', 60, 'retry_max_backoff_seconds', 3600
    )
$$;

-- What a claim may say: intent and origin. Everything else about a run is the catalog's.
create or replace function claim_keys() returns text[]
language sql immutable set search_path from current as $$
    select array[
        'run_id', 'owner', 'runner_backend', 'cluster_id', 'workload_namespace', 'workload_name', 'workload_uid',
        'request_namespace', 'request_name', 'request_uid'
    ] || array(select jsonb_object_keys(claim_defaults()))
$$;

-- Writes a run with its files and an unclaimed lease.
-- Locks: the rows (the caller holds release lock and collection row). Errors: 55000 run_id_taken.
create or replace function begin_run(release uuid, attempt integer, why text, wanted jsonb, claim jsonb)
returns import_decision
language plpgsql set search_path from current as $$
declare
    run import_run;
begin
    run := jsonb_populate_record(null::import_run, claim_defaults() || jsonb_strip_nulls(claim));
    run.id := (claim ->> 'run_id')::uuid;
    run.release_id := release;
    run.attempt := attempt;
    run.state := 'pending';
    run.manifest := wanted;
    run.enqueue_state := 'intended';
    run.enqueue_changed_at := catalog_now();
    run.created_at := catalog_now();
    run.progress := '{}';
    run.metrics := '{}';
    insert into import_run select run.* on conflict (id) do nothing;
    if not found then
        perform refuse('55000', 'run_id_taken', format('there is a run %s already', run.id));
    end if;
    perform select_artifacts(run.id, wanted);
    insert into import_run_lease (run_id, release_id, heartbeat_at) values (run.id, release, catalog_now());
    return row('enqueue', why, release, run.id, attempt)::import_decision;
end
$$;
