-- Writes a new release with its policy. Locks: the rows (prepare_import holds release lock and collection row).
create or replace function register_release(wanted jsonb, collection uuid) returns uuid
language plpgsql set search_path from current as $$
declare
    made uuid;
begin
    insert into authority (collection_id, key)
    select collection, a ->> 'key' from jsonb_array_elements(wanted -> 'authorities') a order by 2
    on conflict do nothing;
    insert into area_type (collection_id, key)
    select collection, t ->> 'key' from jsonb_array_elements(wanted -> 'area_types') t order by 2
    on conflict do nothing;
    insert into release (collection_id, release_key, manifest, created_at)
    values (collection, wanted ->> 'release', wanted, catalog_now()) returning id into made;
    insert into release_authority (release_id, authority_id, name)
    select made, known.id, a ->> 'name'
    from jsonb_array_elements(wanted -> 'authorities') a
    join authority known on known.collection_id = collection and known.key = a ->> 'key';
    insert into release_area_type (release_id, area_type_id, rank, requires_geometry)
    select made, known.id, (t ->> 'rank')::integer, (t ->> 'requires_geometry')::boolean
    from jsonb_array_elements(wanted -> 'area_types') t
    join area_type known on known.collection_id = collection and known.key = t ->> 'key';
    return made;
end
$$;

-- What a claim leaves open. Seconds, but for the counts.
create or replace function claim_defaults() returns jsonb
language sql immutable set search_path from current as $$
    select jsonb_build_object(
        'publish', false, 'stale_after_seconds', 900, 'reject_limit', 0,
        'launch_deadline_seconds', 600, 'start_deadline_seconds', 1800,
        'active_deadline_seconds', 21600, 'stall_deadline_seconds', 3600,
        'retry_limit', 0, 'retry_backoff_seconds', 60, 'retry_max_backoff_seconds', 3600
    )
$$;

-- Writes everything a new release needs, with its first run and an unclaimed lease.
-- Locks: the rows (prepare_import holds release lock and collection row).
create or replace function register_import(wanted jsonb, claim jsonb) returns import_decision
language plpgsql set search_path from current as $$
declare
    home uuid := (select id from collection where key = wanted ->> 'collection');
    run import_run;
begin
    run := jsonb_populate_record(null::import_run, claim_defaults() || jsonb_strip_nulls(claim));
    run.id := (claim ->> 'run_id')::uuid;
    run.release_id := register_release(wanted, home);
    run.attempt := 1;
    run.state := 'pending';
    run.manifest := wanted;
    run.enqueue_state := 'intended';
    run.enqueue_changed_at := catalog_now();
    run.created_at := catalog_now();
    run.progress := '{}';
    run.metrics := '{}';
    insert into import_run select run.*;
    perform register_sources(wanted, home);
    insert into import_run_artifact (run_id, artifact_id, ordinal, format, sha256, bytes, url)
    select run.id, a.id, m.ordinal, a.format, a.sha256, a.bytes, a.url
    from manifest_artifact(wanted) m
    join source s on s.collection_id = home and s.source_key = m.source ->> 'source_key'
    join source_release v on v.source_id = s.id and v.release_key = m.source ->> 'release_key'
    join artifact a on a.source_release_id = v.id and a.logical_name = m.artifact ->> 'logical_name';
    insert into import_run_lease (run_id, release_id, heartbeat_at) values (run.id, run.release_id, catalog_now());
    return row('enqueue', 'registered', run.release_id, run.id, run.attempt)::import_decision;
end
$$;
