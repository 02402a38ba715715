-- Generated from migrations/ and functions/ by geogenius.db.picture. Do not edit.

-- ---- 0001_create_catalog.sql -----------------------------------------------------------------------------

-- What the catalog knows for ever: collections, who defines codes, where files come from, and releases.
-- Times are written by the functions (catalog_now), so that tests can set them; hence no column defaults.

create table collection (
    id uuid primary key default gen_random_uuid(),
    key text not null unique check (key ~ '^[a-z_][a-z0-9_]*$'),
    created_at timestamptz not null
);
comment on table collection is 'Unit of publication and roll back. Identity is the key; policy lives per release.';

create table authority (
    id uuid primary key default gen_random_uuid(),
    collection_id uuid not null references collection,
    key text not null check (key ~ '^[a-z_][a-z0-9_]*$'),
    unique (collection_id, key)
);
comment on table authority is 'Who defines codes. The key is part of area keys; the name is given per release.';

create table area_type (
    id uuid primary key default gen_random_uuid(),
    collection_id uuid not null references collection,
    key text not null check (key ~ '^[a-z_][a-z0-9_]*$'),
    unique (collection_id, key)
);
comment on table area_type is 'A kind of area. Rank and the demand for a geometry are given per release.';

create table source (
    id uuid primary key default gen_random_uuid(),
    collection_id uuid not null references collection,
    source_key text not null check (source_key <> ''),
    provider text not null check (provider <> ''),
    license text not null check (license <> ''),
    created_at timestamptz not null,
    unique (collection_id, source_key)
);
comment on table source is 'Where files come from. Provider and license never change under one key.';

create table source_release (
    id uuid primary key default gen_random_uuid(),
    source_id uuid not null references source,
    release_key text not null check (release_key <> ''),
    source_date date,
    attribution text,
    created_at timestamptz not null,
    unique (source_id, release_key)
);
comment on table source_release is 'One vintage of a source. Its definition never changes.';

create table artifact (
    id uuid primary key default gen_random_uuid(),
    source_release_id uuid not null references source_release,
    logical_name text not null check (logical_name <> ''),
    format text not null check (format <> ''),
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    bytes bigint not null check (bytes > 0),
    url text check (url <> ''),
    created_at timestamptz not null,
    unique (source_release_id, logical_name)
);
comment on table artifact is
    'One reviewed file. May be corrected while every run that selected it has failed; afterwards it never changes.';
comment on column artifact.url is 'Null: the operator of the catalog supplies the file.';

create table release (
    id uuid primary key default gen_random_uuid(),
    collection_id uuid not null references collection,
    release_key text not null check (release_key <> ''),
    manifest jsonb not null check (jsonb_typeof(manifest) = 'object'),
    created_at timestamptz not null,
    completed_at timestamptz,
    retired_at timestamptz check (retired_at is null or completed_at is not null),
    unique (collection_id, release_key)
);
comment on table release is 'A version of a collection. Frozen for ever once completed_at is set.';

create table release_authority (
    release_id uuid not null references release on delete cascade,
    authority_id uuid not null references authority,
    name text not null check (name <> ''),
    primary key (release_id, authority_id)
);

create table release_area_type (
    release_id uuid not null references release on delete cascade,
    area_type_id uuid not null references area_type,
    rank integer not null check (rank > 0),
    requires_geometry boolean not null,
    primary key (release_id, area_type_id),
    unique (release_id, rank)
);
comment on column release_area_type.rank is 'A low rank contains a high one.';

-- ---- 0002_create_runs.sql --------------------------------------------------------------------------------

-- Attempts to build a release: the intent, who executes, what happened.

create type run_state as enum (
    'pending', 'downloading', 'validating', 'staging', 'normalizing', 'relating',
    'indexing', 'verifying', 'publishing', 'completed', 'failed'
);
create type enqueue_state as enum ('intended', 'accepted', 'not_enqueued', 'unknown');

create type import_decision as (decision text, reason text, release_id uuid, run_id uuid, attempt integer);

create table import_run (
    id uuid primary key,
    release_id uuid not null references release,
    attempt integer not null check (attempt > 0),
    state run_state not null,
    owner text not null check (owner <> ''),
    runner_backend text not null check (runner_backend <> ''),
    manifest jsonb not null check (jsonb_typeof(manifest) = 'object'),
    -- intent: survives whoever asked, and the pod
    publish boolean not null,
    stale_after_seconds integer not null check (stale_after_seconds > 0),
    launch_deadline_seconds integer not null check (launch_deadline_seconds > 0),
    start_deadline_seconds integer not null check (start_deadline_seconds > 0),
    active_deadline_seconds integer not null check (active_deadline_seconds > 0),
    stall_deadline_seconds integer not null check (stall_deadline_seconds > 0),
    retry_limit integer not null check (retry_limit >= 0),
    retry_backoff_seconds integer not null check (retry_backoff_seconds > 0),
    retry_max_backoff_seconds integer not null check (retry_max_backoff_seconds >= retry_backoff_seconds),
    reject_limit bigint not null check (reject_limit >= 0),
    cancel_requested_at timestamptz,
    -- who asked in Kubernetes, and which Job carries the run
    request_namespace text,
    request_name text,
    request_uid uuid,
    cluster_id uuid,
    workload_namespace text,
    workload_name text,
    workload_uid uuid,
    -- what is known about its start
    enqueue_state enqueue_state not null,
    enqueue_changed_at timestamptz not null,
    enqueue_reason text,
    -- evidence
    created_at timestamptz not null,
    completed_at timestamptz,
    executor_id uuid,
    execution_started_at timestamptz,
    last_heartbeat_at timestamptz,
    last_progress_at timestamptz,
    progress jsonb not null default '{}' check (jsonb_typeof(progress) = 'object'),
    metrics jsonb not null default '{}' check (jsonb_typeof(metrics) = 'object'),
    verification jsonb,
    error jsonb check (jsonb_typeof(error) = 'object' and error ?& array['phase', 'reason', 'message']),
    unique (release_id, attempt),
    constraint ended_iff_timed check ((state in ('completed', 'failed')) = (completed_at is not null)),
    constraint failed_iff_error check ((state = 'failed') = (error is not null)),
    constraint executor_has_start check ((executor_id is null) = (execution_started_at is null)),
    constraint request_whole check (num_nulls(request_namespace, request_name, request_uid) in (0, 3)),
    constraint workload_whole check (num_nulls(cluster_id, workload_namespace, workload_name) in (0, 3)),
    constraint workload_uid_has_workload check (workload_uid is null or workload_name is not null)
);
create unique index import_run_one_live on import_run (release_id) where state not in ('completed', 'failed');
create index import_run_request on import_run (request_uid, created_at desc);
create index import_run_live_of_cluster on import_run (cluster_id) where state not in ('completed', 'failed');
comment on table import_run is 'One attempt to build a release. A terminal row never changes again.';
comment on column import_run.manifest is 'Snapshot in normal form; what this attempt executes.';
comment on column import_run.cluster_id is
    'uid of the kube-system namespace; an operator judges the runs of its own cluster only.';
comment on column import_run.enqueue_state is
    'Written as intended before anything is sent; accepted is final, see record_enqueue.';
comment on column import_run.executor_id is
    'Evidence, written with the end of the run. While it lives, the lease holds the executor; read import_run_status.';
comment on column import_run.verification is 'Last report of verify_release; completion demands that it says ok.';

create table import_run_lease (
    run_id uuid primary key references import_run on delete cascade,
    release_id uuid not null unique references release,
    heartbeat_at timestamptz not null,
    executor_id uuid,
    execution_started_at timestamptz,
    progress jsonb not null default '{}' check (jsonb_typeof(progress) = 'object'),
    progress_at timestamptz,
    constraint executor_has_start check ((executor_id is null) = (execution_started_at is null))
);
comment on table import_run_lease is
    'Exists exactly while its run lives. No key column ever changes, so a heartbeat never meets the KEY SHARE of a fence.';

create table import_run_artifact (
    run_id uuid not null references import_run on delete cascade,
    artifact_id uuid not null references artifact,
    ordinal integer not null,
    format text not null,
    sha256 text not null,
    bytes bigint not null,
    url text,
    observed_sha256 text check (observed_sha256 ~ '^[0-9a-f]{64}$'),
    observed_bytes bigint check (observed_bytes >= 0),
    observed_at timestamptz,
    primary key (run_id, artifact_id),
    constraint observation_whole check (num_nulls(observed_sha256, observed_bytes, observed_at) in (0, 3))
);
create index import_run_artifact_users on import_run_artifact (artifact_id);
comment on table import_run_artifact is 'The files of one attempt as they were defined then, in order, and what was seen.';

-- ---- 0003_create_areas.sql -------------------------------------------------------------------------------

-- Rows of releases, what could not be imported, and which release readers see.

create table import_reject (
    run_id uuid not null references import_run on delete cascade,
    artifact text not null,
    position bigint not null,
    reason text not null check (reason ~ '^[a-z][a-z0-9_]*$'),
    byte_offset bigint check (byte_offset >= 0),
    detail text not null check (length(detail) <= 200),
    primary key (run_id, artifact, position, reason)
);
comment on table import_reject is 'Every row that was read and not imported, so that nothing is lost silently.';
comment on column import_reject.position is 'Number of the row in the artifact, from 1.';

create table publication (
    collection_id uuid primary key references collection,
    release_id uuid not null references release,
    previous_release_id uuid references release check (previous_release_id <> release_id),
    published_at timestamptz not null
);
comment on table publication is 'The pointer: which release of a collection readers see, and where roll back goes.';
create index publication_release on publication (release_id);

create table publication_event (
    sequence bigint generated always as identity primary key,
    collection_id uuid not null references collection,
    release_id uuid not null references release,
    previous_release_id uuid references release,
    kind text not null check (kind in ('published', 'rolled_back')),
    occurred_at timestamptz not null
);
create index publication_event_release on publication_event (release_id);
comment on table publication_event is 'Append-only log of every move of the pointer.';

-- Release tables: partitioned by collection, then by release. A run builds its two leaves standalone, loads and
-- indexes them, and attaches them when it completes (attach_release). Indexes and keys stand on the leaves alone;
-- there are no foreign keys: attaching would lock the tables they point to.

create table release_area (
    collection_key text not null,
    release_id uuid not null,
    area_number integer not null,
    area_key text collate "C" not null,
    authority text not null,
    area_type text not null,
    code text not null,
    name text,
    centroid geography(Point, 4326),
    attributes jsonb not null check (jsonb_typeof(attributes) = 'object'),
    artifact text not null,
    position bigint not null
) partition by list (collection_key);
comment on table release_area is 'An area in a release. Self-contained: the load numbers the areas densely from 1.';
comment on column release_area.area_key is 'authority:type:code, the identity in its collection on any database.';
comment on column release_area.area_number is 'What boundaries of the same release refer to; means nothing outside.';
comment on column release_area.centroid is 'A point on the surface of the boundary; null without a boundary.';
comment on column release_area.artifact is 'With position: the row of the file that this area was read from.';

create table boundary (
    collection_key text not null,
    release_id uuid not null,
    area_number integer not null,
    geom geometry(MultiPolygon, 4326) compression lz4 not null,
    repaired boolean not null,
    repair_reason text,
    constraint repaired_has_reason check (repaired = (repair_reason is not null))
) partition by list (collection_key);
comment on column boundary.repair_reason is 'What was wrong with the geometry as read (ST_IsValidReason).';

-- ---- 010_time.sql ----------------------------------------------------------------------------------------

-- The clock of the catalog: the start of the transaction, unless the session sets `geogenius.now` (tests do).
create or replace function catalog_now() returns timestamptz
language sql stable parallel safe set search_path from current as $$
    select coalesce(nullif(current_setting('geogenius.now', true), '')::timestamptz, now())
$$;

-- ---- 020_states.sql --------------------------------------------------------------------------------------

-- The single next phase of each working state. Ends are not phases: complete_import, publish_import and
-- fail_import make them. domain/run.py and docs/state-machine.md say the same; a test compares the three.
create or replace view run_state_edge (state, next_state) as
values
    ('pending'::run_state, 'downloading'::run_state),
    ('downloading', 'validating'),
    ('validating', 'staging'),
    ('staging', 'normalizing'),
    ('normalizing', 'relating'),
    ('relating', 'indexing'),
    ('indexing', 'verifying'),
    ('verifying', 'publishing');

-- ---- 030_locks.sql ---------------------------------------------------------------------------------------

-- Locks of the catalog, always taken in this order:
--   release (advisory) -> publication (advisory) -> collection row -> run row -> lease row -> release tables.
-- Advisory keys derive from text, so they can be taken before any row exists. They hold the name of the schema: advisory
-- locks belong to the whole database, and two catalogs in it must not wait for each other.

-- Refuses on purpose: an SQLSTATE and a word in DETAIL, which db/errors.py maps. Nobody parses the message.
create or replace function refuse(code text, word text, message text) returns void
language plpgsql set search_path from current as $$
begin
    raise exception using errcode = code, detail = word, message = message;
end
$$;

-- Serialises prepare, claim and fail of one release. Locks: release.
create or replace function lock_release(collection_key text, release_key text) returns void
language sql set search_path from current as $$
    select pg_advisory_xact_lock(hashtextextended(
        format('geogenius release %s %s %s', current_schema(), collection_key, release_key), 0
    ))
$$;

-- The same, for the release of a run; does nothing for an unknown run. Locks: release.
create or replace function lock_release_of(run uuid) returns void
language plpgsql set search_path from current as $$
begin
    perform lock_release(c.key, r.release_key)
    from import_run i join release r on r.id = i.release_id join collection c on c.id = r.collection_id
    where i.id = run;
end
$$;

-- Serialises moves of the pointer of one collection; no import waits for it. Locks: publication.
create or replace function lock_publication(collection_key text) returns void
language sql set search_path from current as $$
    select pg_advisory_xact_lock(hashtextextended(format('geogenius publication %s %s', current_schema(), collection_key), 0))
$$;

-- Takes a run and its lease for an end: waits for every fenced write in flight and keeps new ones out.
-- Locks: run row, lease row (both FOR UPDATE).
create or replace function lock_run(run uuid) returns void
language plpgsql set search_path from current as $$
begin
    perform from import_run where id = run for update;
    perform from import_run_lease where run_id = run for update;
end
$$;

-- ---- 040_fence.sql ---------------------------------------------------------------------------------------

-- The fence: every write of an import goes through it, in the same transaction. Gives the release id.
-- Locks: run row, lease row (both FOR KEY SHARE: heartbeats and phase changes pass, ends wait).
-- Errors: 23503 unknown_run; 55000 superseded, release_frozen, lease_lost, wrong_phase.
create or replace function assert_import_write(run uuid, executor uuid, permitted run_state[]) returns uuid
language plpgsql set search_path from current as $$
declare
    held import_run;
    holder uuid;
begin
    select * into held from import_run where id = run for key share;
    if not found then
        perform refuse('23503', 'unknown_run', format('no run %s', run));
    end if;
    select executor_id into holder from import_run_lease where run_id = run for key share;
    if exists (select from import_run where release_id = held.release_id and attempt > held.attempt) then
        perform refuse('55000', 'superseded', format('run %s has a later attempt', run));
    elsif not coalesce(holder = executor, false) then
        perform refuse('55000', 'lease_lost', format('run %s (%s) is not executed by %s', run, held.state, executor));
    elsif exists (select from release where id = held.release_id and completed_at is not null) then
        perform refuse('55000', 'release_frozen', format('the release of run %s is completed', run));
    elsif held.state <> all (permitted) then
        perform refuse('55000', 'wrong_phase', format('run %s is %s; this needs %s', run, held.state, permitted));
    end if;
    return held.release_id;
end
$$;

-- ---- 050_prepare.sql -------------------------------------------------------------------------------------

-- Why this manifest cannot be registered as a new release; null if it can. Reads only.
-- Locks: none (prepare_import holds the release lock).
create or replace function judge_import(wanted jsonb, claim jsonb) returns import_decision
language plpgsql stable set search_path from current as $$
declare
    target release;
    latest import_run;
    beat timestamptz;
    same boolean;
    answer import_decision;
begin
    select r.* into target from release r join collection c on c.id = r.collection_id
    where c.key = wanted ->> 'collection' and r.release_key = wanted ->> 'release';
    if not found then
        return null;
    end if;
    select * into latest from import_run where release_id = target.id order by attempt desc limit 1;
    select heartbeat_at into beat from import_run_lease where run_id = latest.id;
    same := latest.manifest = wanted and target.manifest = wanted;
    answer.release_id := target.id;
    answer.reason := case
        -- the very run this call asked for: its first answer was lost
        when latest.state = 'completed' and same and latest.id = (claim ->> 'run_id')::uuid then 'completed'
        when target.retired_at is not null or was_published(target.id) then 'protected'
        when latest.id is null then 'orphan_candidate'
        when latest.state = 'completed' and same then 'completed'
        when latest.state = 'failed' and same then 'failed'
        when latest.state in ('completed', 'failed') then 'manifest_changed'
        when coalesce(beat <= catalog_now() - make_interval(secs => latest.stale_after_seconds), true) then 'stale_import'
        when same and latest.owner = claim ->> 'owner' then 'same_owner'
        else 'live_import'
    end;
    answer.decision := case answer.reason when 'same_owner' then 'enqueue' when 'completed' then 'existing' else 'error' end;
    if answer.reason <> 'protected' then
        answer.run_id := latest.id;
        answer.attempt := latest.attempt;
    end if;
    return answer;
end
$$;

-- Whether readers have ever seen this release. Locks: none.
create or replace function was_published(release uuid) returns boolean
language sql stable set search_path from current as $$
    select exists (select from publication p where release in (p.release_id, p.previous_release_id))
        or exists (select from publication_event e where release in (e.release_id, e.previous_release_id))
$$;

-- Registers an import or says why not; a refusal writes nothing. A call repeated with the same run_id finds its run.
-- `wanted`: the manifest in normal form. `claim`: run_id, owner, runner_backend and further columns of import_run.
-- Locks: release; when registering: collection row (so that source definitions cannot change between check and write).
-- Errors: 22023 bad_claim; 55000 run_id_taken; 23514 from the CHECKs.
create or replace function prepare_import(wanted jsonb, claim jsonb) returns import_decision
language plpgsql set search_path from current as $$
declare
    answer import_decision;
begin
    if not coalesce(claim ?& array['run_id', 'owner', 'runner_backend'], false) then
        perform refuse('22023', 'bad_claim', 'a claim needs run_id, owner and runner_backend');
    end if;
    perform lock_release(wanted ->> 'collection', wanted ->> 'release');
    answer := judge_import(wanted, claim);
    if answer.reason is not null then
        return answer;
    elsif exists (select from import_run where id = (claim ->> 'run_id')::uuid) then
        perform refuse('55000', 'run_id_taken', format('run %s builds another release', claim ->> 'run_id'));
    end if;
    -- If this insert makes the collection, it has no sources yet; so a refusal below has still written nothing.
    insert into collection (key, created_at) values (wanted ->> 'collection', catalog_now()) on conflict do nothing;
    perform from collection where key = wanted ->> 'collection' for no key update;
    if source_definition_changed(wanted) then
        return row('error', 'source_definition_changed', null, null, null)::import_decision;
    end if;
    return register_import(wanted, claim);
end
$$;

-- ---- 060_sources.sql -------------------------------------------------------------------------------------

-- The artifacts of a manifest, one row each, in its order. Reads nothing but its argument.
create or replace function manifest_artifact(wanted jsonb)
returns table (source jsonb, artifact jsonb, ordinal bigint)
language sql immutable set search_path from current as $$
    select s.value, a.value, row_number() over (order by s.ordinality, a.ordinality)
    from jsonb_array_elements(wanted -> 'sources') with ordinality s,
        jsonb_array_elements(s.value -> 'artifacts') with ordinality a
$$;

-- Whether the manifest defines a known source, vintage or file differently. A file may be corrected as long as
-- every run that selected it has failed. Locks: none (prepare_import holds the collection row).
create or replace function source_definition_changed(wanted jsonb) returns boolean
language sql stable set search_path from current as $$
    select exists (
        select
        from manifest_artifact(wanted) m
        join collection c on c.key = wanted ->> 'collection'
        join source s on s.collection_id = c.id and s.source_key = m.source ->> 'source_key'
        left join source_release v on v.source_id = s.id and v.release_key = m.source ->> 'release_key'
        left join artifact a on a.source_release_id = v.id and a.logical_name = m.artifact ->> 'logical_name'
        where (s.provider, s.license) is distinct from (m.source ->> 'provider', m.source ->> 'license')
            or v.id is not null and (v.source_date, v.attribution)
                is distinct from ((m.source ->> 'source_date')::date, m.source ->> 'attribution')
            or a.id is not null and (a.format, a.sha256, a.bytes, a.url) is distinct from (
                m.artifact ->> 'format', m.artifact ->> 'sha256', (m.artifact ->> 'bytes')::bigint, m.artifact ->> 'url'
            ) and exists (
                select from import_run_artifact u join import_run i on i.id = u.run_id
                where u.artifact_id = a.id and i.state <> 'failed'
            )
    )
$$;

-- Writes the sources, vintages and files of a manifest; corrects files as source_definition_changed permits.
-- Inserts in key order, so that two registrations wait for each other instead of deadlocking. Locks: the rows.
create or replace function register_sources(wanted jsonb, collection uuid) returns void
language sql set search_path from current as $$
    insert into source (collection_id, source_key, provider, license, created_at)
    select distinct collection, m.source ->> 'source_key', m.source ->> 'provider', m.source ->> 'license', catalog_now()
    from manifest_artifact(wanted) m order by 2
    on conflict do nothing;

    insert into source_release (source_id, release_key, source_date, attribution, created_at)
    select distinct s.id, m.source ->> 'release_key', (m.source ->> 'source_date')::date, m.source ->> 'attribution',
        catalog_now()
    from manifest_artifact(wanted) m
    join source s on s.collection_id = collection and s.source_key = m.source ->> 'source_key'
    order by 1, 2
    on conflict do nothing;

    insert into artifact (source_release_id, logical_name, format, sha256, bytes, url, created_at)
    select v.id, m.artifact ->> 'logical_name', m.artifact ->> 'format', m.artifact ->> 'sha256',
        (m.artifact ->> 'bytes')::bigint, m.artifact ->> 'url', catalog_now()
    from manifest_artifact(wanted) m
    join source s on s.collection_id = collection and s.source_key = m.source ->> 'source_key'
    join source_release v on v.source_id = s.id and v.release_key = m.source ->> 'release_key'
    order by 1, 2
    on conflict (source_release_id, logical_name) do update
    set format = excluded.format, sha256 = excluded.sha256, bytes = excluded.bytes, url = excluded.url;
$$;

-- ---- 070_register.sql ------------------------------------------------------------------------------------

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

-- ---- 080_execution.sql -----------------------------------------------------------------------------------

-- Makes a process the one executor of a run. Repeating it with the same executor before the first phase is harmless.
-- Answers: claimed, occupied, completed, failed, missing, superseded. A claim proves that the start was accepted.
-- Locks: release, run row, lease row.
create or replace function claim_import_execution(run uuid, executor uuid) returns text
language plpgsql set search_path from current as $$
declare
    wanted import_run;
    holder import_run_lease;
begin
    perform lock_release_of(run);
    select * into wanted from import_run where id = run for no key update;
    if not found then
        return 'missing';
    elsif exists (select from import_run where release_id = wanted.release_id and attempt > wanted.attempt) then
        return 'superseded';
    elsif wanted.state in ('completed', 'failed') then
        return wanted.state;
    elsif wanted.state <> 'pending' then
        return 'occupied';
    end if;
    select * into holder from import_run_lease where run_id = run for no key update;
    if holder.executor_id = executor then
        return 'claimed';
    elsif not found or holder.executor_id is not null then
        return 'occupied';
    end if;
    update import_run_lease
    set executor_id = executor, execution_started_at = catalog_now(), heartbeat_at = catalog_now()
    where run_id = run;
    perform record_enqueue(run, 'accepted', 'claimed by an executor', null);
    return 'claimed';
end
$$;

-- Moves a run to its single next phase, merges metrics, renews the heartbeat. Ends are not phases.
-- Locks: run row, lease row. Errors: those of the fence; 55000 wrong_phase for every other edge.
create or replace function advance_import(run uuid, executor uuid, next run_state, figures jsonb) returns void
language plpgsql set search_path from current as $$
begin
    perform assert_import_write(run, executor, array(select e.state from run_state_edge e where e.next_state = next));
    update import_run i set state = next, metrics = i.metrics || figures
    from run_state_edge e
    where i.id = run and e.next_state = next and i.state = e.state;
    if not found then
        perform refuse('55000', 'wrong_phase', format('run %s was moved meanwhile', run));
    end if;
    update import_run_lease set heartbeat_at = catalog_now() where run_id = run;
end
$$;

-- Says that the executor lives, and how far it is. A plain update of the lease: it never waits for a fenced write.
-- Locks: lease row. Errors: 55000 lease_lost, also after the end of the run.
create or replace function heartbeat_import(run uuid, executor uuid, news jsonb) returns void
language plpgsql set search_path from current as $$
begin
    update import_run_lease l
    set heartbeat_at = catalog_now(),
        progress_at = case when l.progress @> news then l.progress_at else catalog_now() end,
        progress = l.progress || news
    where l.run_id = run and l.executor_id = executor;
    if not found then
        perform refuse('55000', 'lease_lost', format('run %s is not executed by %s', run, executor));
    end if;
end
$$;

-- Keeps what is known about the start of a run. `accepted` is final: later doubts and refusals change nothing, nor
-- does anything after the end. Repeating an answer keeps its time, so that it tells how long it has held.
-- Locks: run row. Errors: 23503 unknown_run; 22023 bad_enqueue_state for `intended`, which registration alone writes.
create or replace function record_enqueue(run uuid, answer enqueue_state, why text, uid text) returns void
language plpgsql set search_path from current as $$
begin
    if answer = 'intended' then
        perform refuse('22023', 'bad_enqueue_state', 'intended is written by registration alone');
    elsif not exists (select from import_run where id = run) then
        perform refuse('23503', 'unknown_run', format('no run %s', run));
    end if;
    update import_run i
    set enqueue_state = answer,
        enqueue_changed_at = case when i.enqueue_state = answer then i.enqueue_changed_at else catalog_now() end,
        enqueue_reason = case when i.enqueue_state = 'accepted' then i.enqueue_reason else why end,
        workload_uid = coalesce(i.workload_uid, (case when i.workload_name is not null then uid end)::uuid)
    where i.id = run and i.completed_at is null and (i.enqueue_state <> 'accepted' or answer = 'accepted');
end
$$;

-- ---- 090_artifacts.sql -----------------------------------------------------------------------------------

-- Keeps what was seen of a file. Repeating an observation keeps its first time.
-- Locks: those of the fence, artifact row. Errors: those of the fence; 23503 unknown_artifact;
-- 23514 artifact_mismatch (not the reviewed file).
create or replace function record_artifact_observation(
    run uuid, executor uuid, artifact uuid, seen_sha256 text, seen_bytes bigint
) returns void
language plpgsql set search_path from current as $$
declare
    known import_run_artifact;
begin
    perform assert_import_write(run, executor, array['downloading', 'validating']::run_state[]);
    select * into known from import_run_artifact u where u.run_id = run and u.artifact_id = artifact for no key update;
    if not found then
        perform refuse('23503', 'unknown_artifact', format('run %s has no artifact %s', run, artifact));
    elsif (known.sha256, known.bytes) is distinct from (lower(seen_sha256), seen_bytes) then
        perform refuse('23514', 'artifact_mismatch', format(
            'expected %s bytes with sha256 %s, found %s bytes with sha256 %s',
            known.bytes, known.sha256, seen_bytes, lower(seen_sha256)
        ));
    end if;
    -- What does not match is refused above, so a second observation can only be the same.
    update import_run_artifact u
    set observed_sha256 = known.sha256, observed_bytes = known.bytes, observed_at = catalog_now()
    where u.run_id = run and u.artifact_id = artifact and u.observed_at is null;
end
$$;

-- ---- 100_staging.sql -------------------------------------------------------------------------------------

-- Names of the tables of a run and of a release: hexadecimal only, so no caller's text reaches an identifier.
create or replace function staging_table(run uuid) returns text
language sql immutable set search_path from current as $$ select 'staging_' || replace(run::text, '-', '') $$;

create or replace function release_table(parent text, release uuid) returns text
language sql immutable set search_path from current as $$ select parent || '_' || replace(release::text, '-', '') $$;

-- Makes the empty staging table of a run, in place of an older one. Unlogged: it never outlives its run, and what a
-- crash takes from it is noticed when it is merged (assert_staged).
-- Locks: those of the fence, the table. Errors: those of the fence.
create or replace function create_staging(run uuid, executor uuid) returns void
language plpgsql set search_path from current as $$
begin
    perform assert_import_write(run, executor, array['staging']::run_state[]);
    execute format('drop table if exists %I', staging_table(run));
    execute format($ddl$
        create unlogged table %I (
            id bigint generated always as identity, artifact text not null, position bigint not null,
            authority text not null, area_type text not null, code text not null, name text,
            attributes jsonb not null, geom geometry(MultiPolygon, 4326) compression lz4
        )
    $ddl$, staging_table(run));
end
$$;

-- Keeps rows that cannot be imported. Repeating one keeps the first. Set-wise: the arrays have one length.
-- Locks: the rows (the caller has passed the fence in this transaction).
create or replace function record_rejects(
    run uuid, artifact text, positions bigint[], reasons text[], byte_offsets bigint[], details text[]
) returns void
language sql set search_path from current as $$
    insert into import_reject (run_id, artifact, position, reason, byte_offset, detail)
    select run, artifact, r.position, r.reason, r.byte_offset, left(r.detail, 200)
    from unnest(positions, reasons, byte_offsets, details) r (position, reason, byte_offset, detail)
    on conflict do nothing
$$;

-- ---- 105_tables.sql --------------------------------------------------------------------------------------

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

-- ---- 110_rejects.sql -------------------------------------------------------------------------------------

-- The identity of an area in its collection. Authority and type hold no colon, so it is unambiguous.
-- Without a pinned search_path, so that it is inlined; it uses nothing but operators of pg_catalog.
create or replace function area_key(authority text, area_type text, code text) returns text
language sql immutable parallel safe as $$ select (authority || ':' || area_type || ':' || code) collate "C" $$;

-- Repairs what is not valid in a staging table: temporary table `repaired`, `geom` null where no polygon is left.
-- Locks: none.
create or replace function repair_staged(staging text) returns void
language plpgsql set search_path from current as $$
begin
    drop table if exists pg_temp.repaired;
    execute format($sql$
        create temporary table repaired on commit drop as
        select s.id, s.artifact, s.position, case when not ST_IsEmpty(made.geom) then made.geom end as geom,
            case when ST_IsEmpty(s.geom) then 'Empty geometry' else ST_IsValidReason(s.geom) end as reason
        from %I s, lateral (
            select ST_Multi(ST_CollectionExtract(ST_MakeValid(s.geom, 'method=structure keepcollapsed=false'), 3))
            offset 0  -- evaluated once a row
        ) made (geom)
        where s.geom is not null and (ST_IsEmpty(s.geom) or not ST_IsValid(s.geom))
    $sql$, staging);
    analyze pg_temp.repaired;
end
$$;

-- Finds all but the first staged row of each area key, among rows with a usable geometry: temporary table `repeated`.
-- First is the lowest position of the first artifact, whatever the order of staging. Locks: none.
create or replace function find_repeated(staging text) returns void
language plpgsql set search_path from current as $$
begin
    drop table if exists pg_temp.repeated;
    execute format($sql$
        create temporary table repeated on commit drop as
        with keyed as (
            select s.id, s.artifact, s.position, area_key(s.authority, s.area_type, s.code) as area_key
            from %I s
            where not exists (select from pg_temp.repaired r where r.id = s.id and r.geom is null)
        )
        select * from (
            select k.*, row_number() over same_key as occurrence,
                first_value(k.position) over same_key as first_position,
                first_value(k.artifact) over same_key as first_artifact
            from keyed k
            where k.area_key in (select area_key from keyed group by area_key having count(*) > 1)
            window same_key as (partition by k.area_key order by k.artifact, k.position, k.id)
        ) found
        where occurrence > 1
    $sql$, staging);
    analyze pg_temp.repeated;
end
$$;

-- Keeps as rejects what repair_staged and find_repeated have found. Locks: the rows.
create or replace function reject_staged(run uuid) returns void
language plpgsql set search_path from current as $$
begin
    insert into import_reject (run_id, artifact, position, reason, detail)
    select run, r.artifact, r.position, 'empty_geometry', left('no polygon is left: ' || r.reason, 200)
    from pg_temp.repaired r where r.geom is null
    union all
    select run, r.artifact, r.position, 'duplicate_code', left(
        format('area %s was read before at position %s of %s', r.area_key, r.first_position, r.first_artifact), 200
    )
    from pg_temp.repeated r
    on conflict do nothing;
end
$$;

-- ---- 115_merge.sql ---------------------------------------------------------------------------------------

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

-- ---- 120_index.sql ---------------------------------------------------------------------------------------

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

-- ---- 130_verify.sql --------------------------------------------------------------------------------------

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

-- ---- 140_attach.sql --------------------------------------------------------------------------------------

-- Attaches one table of a release where readers find it, making the collection's partition first if it is missing.
-- Never CREATE TABLE ... PARTITION OF: that would lock out readers; attaching with matching CHECKs neither scans nor waits.
-- Locks: root and collection partition (both SHARE UPDATE EXCLUSIVE: readers pass), the release's own table.
create or replace function attach_release_table(parent text, release uuid, collection collection) returns void
language plpgsql set search_path from current as $$
declare
    middle text := parent || '_of_' || replace(collection.id::text, '-', '');
begin
    if to_regclass(middle) is null then
        execute format('lock table %I in share update exclusive mode', parent);
    end if;
    if to_regclass(middle) is null then
        execute format($ddl$
            create table %I (
                like %I including constraints including compression,
                constraint collection_bound check (collection_key = %L)
            ) partition by list (release_id)
        $ddl$, middle, parent, collection.key);
        execute format('alter table %I attach partition %I for values in (%L)', parent, middle, collection.key);
    end if;
    execute format('alter table %I attach partition %I for values in (%L)', middle, release_table(parent, release), release);
end
$$;

create or replace function attach_release(release uuid) returns void
language plpgsql set search_path from current as $$
declare
    home collection;
begin
    select c.* into home from release r join collection c on c.id = r.collection_id where r.id = release;
    perform attach_release_table('release_area', release, home);
    perform attach_release_table('boundary', release, home);
end
$$;

-- ---- 150_finish.sql --------------------------------------------------------------------------------------

-- Ends a run: evidence moves from the lease to the run, the lease goes. Locks: held by the caller (lock_run).
create or replace function end_run(run uuid, ending run_state, figures jsonb, why jsonb) returns void
language sql set search_path from current as $$
    update import_run i
    set state = ending, completed_at = catalog_now(), error = why, metrics = i.metrics || figures,
        executor_id = l.executor_id, execution_started_at = l.execution_started_at,
        last_heartbeat_at = l.heartbeat_at, last_progress_at = l.progress_at, progress = l.progress
    from import_run_lease l
    where i.id = run and l.run_id = run;
    delete from import_run_lease where run_id = run;
$$;

-- Completes a run and its release in the caller's transaction.
-- Locks: run row, lease row (FOR UPDATE), release tables as in attach_release_table.
-- Errors: those of the fence; 23514 artifact_unobserved, not_verified.
create or replace function finish_import(run uuid, executor uuid, phase run_state, figures jsonb) returns uuid
language plpgsql set search_path from current as $$
declare
    target uuid;
begin
    perform lock_run(run);
    target := assert_import_write(run, executor, array[phase]);
    if exists (select from import_run_artifact where run_id = run and observed_at is null) then
        perform refuse('23514', 'artifact_unobserved', format('run %s has files that were never seen', run));
    elsif not exists (select from import_run where id = run and (verification ->> 'ok')::boolean) then
        perform refuse('23514', 'not_verified', format('run %s did not pass verification', run));
    end if;
    perform attach_release(target);
    execute format('drop table if exists %I', staging_table(run));
    update release set completed_at = catalog_now() where id = target;
    perform end_run(run, 'completed', figures, null);
    return target;
end
$$;

-- Completes a run from phase verifying; the publication stays as it is. A second call is refused: read the run.
-- Locks and errors: finish_import.
create or replace function complete_import(run uuid, executor uuid, figures jsonb) returns uuid
language sql set search_path from current as $$
    select finish_import(run, executor, 'verifying', figures)
$$;

-- Points readers of a collection at a completed release and logs it; nothing happens if they see it already.
-- Locks: publication row (the caller holds the publication lock).
create or replace function move_pointer(release uuid) returns void
language plpgsql set search_path from current as $$
declare
    home uuid := (select collection_id from release r where r.id = move_pointer.release);
    current_id uuid := (select release_id from publication where collection_id = home);
begin
    if current_id = release then
        return;
    end if;
    insert into publication (collection_id, release_id, previous_release_id, published_at)
    values (home, release, current_id, catalog_now())
    on conflict (collection_id) do update
    set release_id = excluded.release_id, previous_release_id = excluded.previous_release_id,
        published_at = excluded.published_at;
    insert into publication_event (collection_id, release_id, previous_release_id, kind, occurred_at)
    values (home, release, current_id, 'published', catalog_now());
end
$$;

-- Completes a run from phase publishing and publishes its release, or neither. A second call is refused: read the run.
-- Locks: publication, then finish_import. Errors: those of finish_import.
create or replace function publish_import(run uuid, executor uuid) returns uuid
language plpgsql set search_path from current as $$
declare
    target uuid;
begin
    perform lock_publication(c.key)
    from import_run i join release r on r.id = i.release_id join collection c on c.id = r.collection_id
    where i.id = run;
    target := finish_import(run, executor, 'publishing', '{}');
    perform move_pointer(target);
    return target;
end
$$;

-- Records the failure of a run and drops its tables. `why`: {phase, reason, message, evidence}. A second failure
-- changes nothing: the first evidence stays. A run that nobody claimed takes the caller's executor.
-- Locks: release, run row, lease row, the run's own tables. Waits for a fenced write in flight.
-- Errors: 23503 unknown_run; 55000 run_completed, lease_lost.
create or replace function fail_import(run uuid, executor uuid, why jsonb) returns void
language plpgsql set search_path from current as $$
declare
    failing import_run;
    holder uuid;
begin
    perform lock_release_of(run);
    perform lock_run(run);
    select * into failing from import_run where id = run;
    if not found then
        perform refuse('23503', 'unknown_run', format('no run %s', run));
    elsif failing.state = 'completed' then
        perform refuse('55000', 'run_completed', format('run %s is completed and cannot fail', run));
    elsif failing.state = 'failed' then
        return;
    end if;
    update import_run_lease
    set executor_id = executor, execution_started_at = catalog_now()
    where run_id = run and executor_id is null;
    select executor_id into holder from import_run_lease where run_id = run;
    if not coalesce(holder = executor, false) then
        perform refuse('55000', 'lease_lost', format('run %s is not executed by %s', run, executor));
    end if;
    perform end_run(run, 'failed', '{}', why);
    execute format('drop table if exists %I', staging_table(run));
    perform drop_release_tables(failing.release_id);
end
$$;

-- ---- 160_status.sql --------------------------------------------------------------------------------------

-- A run as people and operators read it. While it lives, executor, heartbeat and progress come from its lease.
create or replace view import_run_status as
select
    i.id as run_id, i.release_id, c.key as collection_key, r.release_key, i.attempt, i.state, i.owner, i.runner_backend,
    i.publish, exists (select from publication p where p.release_id = i.release_id) and i.state = 'completed' as published,
    i.stale_after_seconds, i.launch_deadline_seconds, i.start_deadline_seconds, i.active_deadline_seconds,
    i.stall_deadline_seconds, i.retry_limit, i.retry_backoff_seconds, i.retry_max_backoff_seconds, i.reject_limit,
    i.enqueue_state, i.enqueue_changed_at, i.enqueue_reason,
    i.request_namespace, i.request_name, i.request_uid,
    i.cluster_id, i.workload_namespace, i.workload_name, i.workload_uid,
    coalesce(l.executor_id, i.executor_id) as executor_id,
    coalesce(l.execution_started_at, i.execution_started_at) as execution_started_at,
    coalesce(l.heartbeat_at, i.last_heartbeat_at) as last_heartbeat_at,
    coalesce(l.progress_at, i.last_progress_at) as last_progress_at,
    coalesce(l.progress, i.progress) as progress,
    i.cancel_requested_at, i.created_at, i.completed_at, i.metrics, i.verification, i.error,
    (select count(*) from import_reject x where x.run_id = i.id) as rejected,
    catalog_now() as read_at
from import_run i
join release r on r.id = i.release_id
join collection c on c.id = r.collection_id
left join import_run_lease l on l.run_id = i.id;

-- ---- 170_published.sql -----------------------------------------------------------------------------------

-- What readers see. collection_key is the partition key itself and comes first: `where collection_key = 'us'`
-- prunes while planning, however many collections and releases there are.
create or replace view published_areas as
select
    a.collection_key, a.release_id, r.release_key, a.area_key, a.authority, a.area_type, t.rank as type_rank,
    a.code, a.name, a.centroid, a.attributes
from publication p
join release r on r.id = p.release_id
join collection c on c.id = p.collection_id
join release_area a on a.collection_key = c.key and a.release_id = p.release_id
join area_type k on k.collection_id = p.collection_id and k.key = a.area_type
join release_area_type t on t.release_id = p.release_id and t.area_type_id = k.id;

create or replace view published_boundaries as
select
    a.collection_key, a.release_id, r.release_key, a.area_key, b.geom, b.repaired, b.repair_reason
from publication p
join release r on r.id = p.release_id
join collection c on c.id = p.collection_id
join release_area a on a.collection_key = c.key and a.release_id = p.release_id
join boundary b on b.collection_key = c.key and b.release_id = p.release_id and b.area_number = a.area_number;

-- The areas of one published release that cover a point, edges included; of a place that is two points, either. The dynamic query carries collection and
-- release as constants, so that planning opens one leaf of each table. Uses the GiST index on boundary.geom.
create or replace function areas_of_release_for_point(collection_key text, release uuid, point geometry)
returns table (area_key text, authority text, area_type text, code text, name text, attributes jsonb)
language plpgsql stable parallel safe set search_path from current as $$
begin
    return query execute format($sql$
        select a.area_key, a.authority, a.area_type, a.code, a.name, a.attributes
        from boundary b join release_area a on a.area_number = b.area_number
        where b.collection_key = %1$L and b.release_id = %2$L and a.collection_key = %1$L and a.release_id = %2$L
            and ST_Intersects(b.geom, $1)
    $sql$, collection_key, release) using point;
end
$$;

-- Published areas that cover a point (degrees, WGS 84); `collections` null means all. Broad types first.
-- The meridians 180 and -180 are one line, whichever of them an area was drawn to.
-- Errors: 22023 bad_coordinate.
create or replace function areas_for_point(longitude float8, latitude float8, collections text[] default null)
returns table (
    collection_key text, release_id uuid, release_key text, area_key text, authority text, area_type text,
    type_rank integer, code text, name text, attributes jsonb
)
language plpgsql stable parallel safe set search_path from current as $$
declare
    place geometry := ST_SetSRID(ST_MakePoint(longitude, latitude), 4326);
begin
    if not coalesce(longitude between -180 and 180 and latitude between -90 and 90, false) then
        perform refuse('22023', 'bad_coordinate', format('no such point: longitude %s, latitude %s', longitude, latitude));
    elsif abs(longitude) = 180 then
        place := ST_Collect(place, ST_SetSRID(ST_MakePoint(-longitude, latitude), 4326));
    end if;
    return query
    select c.key, r.id, r.release_key, a.area_key, a.authority, a.area_type, t.rank, a.code, a.name, a.attributes
    from publication p
    join release r on r.id = p.release_id
    join collection c on c.id = p.collection_id
    cross join lateral areas_of_release_for_point(c.key, r.id, place) a
    join area_type k on k.collection_id = c.id and k.key = a.area_type
    join release_area_type t on t.release_id = r.id and t.area_type_id = k.id
    where collections is null or c.key = any (collections)
    order by c.key, t.rank, a.area_key;
end
$$;
