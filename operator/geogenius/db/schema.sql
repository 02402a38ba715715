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

-- ---- 0004_add_release_details.sql ------------------------------------------------------------------------

-- More tables of a release: pieces of large boundaries, further names and codes, relations. Partitioned, attached and
-- dropped like the two of 0003; without foreign keys for the same reason.

alter table boundary add column divided boolean not null default false;
comment on column boundary.divided is 'Has many vertices: boundary_part holds pieces of it, which answer for it.';

create table boundary_part (
    collection_key text not null,
    release_id uuid not null,
    area_number integer not null,
    geom geometry(Geometry, 4326) compression lz4 not null
) partition by list (collection_key);
comment on table boundary_part is
    'Pieces of divided boundaries, 256 vertices at most (ST_Subdivide), for fast questions.';

create table area_name (
    collection_key text not null,
    release_id uuid not null,
    area_number integer not null,
    name text not null check (name <> ''),
    kind text not null check (kind in ('official', 'alias', 'mailing', 'abbreviation')),
    locale text check (locale <> '')
) partition by list (collection_key);
comment on table area_name is 'Names of an area beside its official one, which stands in release_area.name.';

create table area_code (
    collection_key text not null,
    release_id uuid not null,
    area_number integer not null,
    code_type text not null check (code_type ~ '^[a-z_][a-z0-9_]*$'),
    code_value text collate "C" not null check (code_value <> '')
) partition by list (collection_key);
comment on table area_code is 'Codes of an area beside its own, which stands in release_area.code under its authority.';

create table relation (
    collection_key text not null,
    release_id uuid not null,
    parent_number integer not null,
    child_number integer not null,
    relation_type text not null check (relation_type in ('contains', 'mostly_contains', 'overlaps')),
    intersection_area_m2 double precision check (intersection_area_m2 > 0),
    parent_coverage double precision check (parent_coverage between 0 and 1),
    child_coverage double precision check (child_coverage between 0 and 1),
    constraint two_areas check (parent_number <> child_number),
    constraint measured_whole check (num_nulls(intersection_area_m2, parent_coverage, child_coverage) in (0, 3))
) partition by list (collection_key);
comment on table relation is 'An edge from a broad area to a narrow one. Without measures it was asserted by a source.';

alter table release add column filled text[];
comment on column release.filled is
    'Which of its further tables hold rows, so that questions leave out the others. Null: completed by 0.1, not known.';

-- Imports that are under way at this moment have tables of their own, which get the new columns too.
do $$
declare
    own regclass;
begin
    for own in
        select c.oid from pg_class c
        where c.relnamespace = current_schema()::regnamespace and c.relname ~ '^boundary_[0-9a-f]{32}$'
            and not c.relispartition
    loop
        execute format('alter table %s add column divided boolean not null default false', own);
    end loop;
    for own in
        select c.oid from pg_class c
        where c.relnamespace = current_schema()::regnamespace and c.relname ~ '^staging_[0-9a-f]{32}$'
    loop
        execute format(
            'alter table %s add column point geometry(Point, 4326), add column names jsonb, add column codes jsonb,'
            'add column parents jsonb', own
        );
    end loop;
end
$$;

-- ---- 0005_add_succession.sql -----------------------------------------------------------------------------

-- Areas that are no more, and the history of the pointer.

create table area_retirement (
    collection_id uuid not null references collection,
    area_key text collate "C" not null check (area_key <> ''),
    retired_at timestamptz not null,
    successor_key text collate "C" check (successor_key <> '' and successor_key <> area_key),
    primary key (collection_id, area_key)
);
comment on table area_retirement is
    'Areas that no longer exist, whatever releases say of them, and who took their place. It alone spans releases.';

-- The pointer leads to releases of its own collection: a key proves it.
alter table release add unique (collection_id, id);
alter table publication
    add foreign key (collection_id, release_id) references release (collection_id, id),
    add foreign key (collection_id, previous_release_id) references release (collection_id, id);
alter table publication_event
    add foreign key (collection_id, release_id) references release (collection_id, id),
    add foreign key (collection_id, previous_release_id) references release (collection_id, id);
create index publication_event_of_collection on publication_event (collection_id, sequence desc);
create index publication_previous on publication (previous_release_id);
create index publication_event_previous on publication_event (previous_release_id);

-- ---- 0006_add_gates.sql ----------------------------------------------------------------------------------

-- What a run must show at verification beyond soundness; gate_failures judges it.
alter table import_run
    add column gates jsonb not null default '{}',
    add constraint gates_known check (
        jsonb_typeof(gates) = 'object' and gates - array['minimum_areas', 'required_types', 'max_shrink_percent'] = '{}'
        and coalesce(jsonb_typeof(gates -> 'minimum_areas'), 'object') = 'object'
        and coalesce(jsonb_typeof(gates -> 'required_types'), 'array') = 'array'
        and coalesce((gates ->> 'max_shrink_percent')::numeric between 0 and 100, true)
    );
comment on column import_run.gates is
    'Optional gates of verification: minimum_areas {type: count}, required_types [type], max_shrink_percent 0 to 100.';

-- ---- 0007_add_roles.sql ----------------------------------------------------------------------------------

-- Roles that were given rights to this catalog. `grant_access` writes it; every migration grants anew what it lists.
create table catalog_role (
    role name primary key,
    access text not null check (access in ('writer', 'reader')),
    granted_at timestamptz not null
);
comment on table catalog_role is
    'The owner migrates and sweeps; a writer (operator, importer) calls functions; a reader reads what is complete.';

-- ---- 0008_drop_replaced_functions.sql --------------------------------------------------------------------

-- Functions and views whose names, arguments or columns are others now. What programs of 0.1 call keeps its signature.
drop function if exists register_import(jsonb, jsonb);
drop function if exists register_release(jsonb, uuid);
drop function if exists release_failures(uuid);
drop function if exists move_pointer(uuid);
drop function if exists merge_staging(uuid, uuid, bigint);
drop function if exists find_repeated(text);
drop function if exists fill_release_tables(text, uuid, text);
drop function if exists areas_for_point(double precision, double precision, text[]);
drop function if exists areas_of_release_for_point(text, uuid, geometry);
drop view if exists published_areas;
drop view if exists published_boundaries;

-- ---- 0009_add_match_types.sql ----------------------------------------------------------------------------

-- What questions answer with, and what they are asked of: said once for all functions that read.

create type area_match as (
    collection_key text, release_id uuid, release_key text,
    area_key text, authority text, area_type text, type_rank integer, code text, name text, codes jsonb,
    centroid geography(Point, 4326), attributes jsonb, retired_at timestamptz, successor_key text,
    match_method text, distance_m double precision, intersection_area_m2 double precision,
    coverage_of_input double precision, coverage_of_area double precision, score double precision,
    depth integer, relation_type text
);
comment on type area_match is 'An area that answers a question. Measures that the question does not make are null.';
comment on column area_match.codes is 'All codes: {code_type: [values]}; the own code under its authority.';
comment on column area_match.coverage_of_input is 'Per cent of the asked polygon that lies in the area.';
comment on column area_match.coverage_of_area is 'Per cent of the area that lies in the asked polygon.';
comment on column area_match.score is 'Similarity of the best name, 0 to 1.';
comment on column area_match.relation_type is 'Of the last step of the shortest way.';

create type question_scope as (
    collection_key text, collection_id uuid, release_id uuid, release_key text,
    types text[], include_retired boolean, ranks jsonb, filled text[]
);
comment on type question_scope is 'One release that a question is put to, and which of its areas count.';
comment on column question_scope.ranks is '{area_type: rank} of the release.';

-- ---- 0010_add_queue_components.sql -----------------------------------------------------------------------

-- What `pgflow install` made in this database, so that `pgflow uninstall` takes away that and nothing else.
create table queue_component (
    component text not null check (component in ('pgmq', 'realtime', 'pgflow', 'flow')),
    script text not null check (script <> ''),
    origin text not null,
    version text not null,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    applied_at timestamptz not null,
    primary key (component, script)
);
comment on table queue_component is 'Scripts that made parts of the queue; what is not listed was made by others.';

-- ---- 0011_let_requests_queue.sql -------------------------------------------------------------------------

-- A run that a request asked for belongs to a cluster even where no Job carries it, but a queue.
alter table import_run
    drop constraint workload_whole,
    add constraint workload_whole check (
        num_nulls(workload_namespace, workload_name) in (0, 2) and (workload_name is null or cluster_id is not null)
    );

-- ---- 010_time.sql ----------------------------------------------------------------------------------------

-- Functions of one expression over pg_catalog have no pinned search_path, so that they are inlined: planning them in
-- every call would cost more than they do.

-- The clock of the catalog: the start of the transaction, unless a session of the owner sets
-- `geogenius.now` (tests do); from anybody else it is not heard.
create or replace function catalog_now() returns timestamptz
language sql stable parallel safe as $$
    select case
        when current_setting('geogenius.now', true) <> ''
            and has_schema_privilege(session_user, current_schema(), 'create')
        then current_setting('geogenius.now', true)::timestamptz else now() end
$$;

-- The same clock at this very moment, for what happens after a wait for a lock: a transaction that began first may
-- move the pointer last.
create or replace function catalog_clock() returns timestamptz
language sql volatile as $$
    select case
        when current_setting('geogenius.now', true) <> ''
            and has_schema_privilege(session_user, current_schema(), 'create')
        then current_setting('geogenius.now', true)::timestamptz else clock_timestamp() end
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
--   release (advisory) -> publication (advisory) -> collection row -> run row -> lease row -> release tables -> events
--   (advisory).
-- Advisory keys derive from text, so they can be taken before any row exists. They hold the name of the schema:
-- advisory locks belong to the whole database, and two catalogs in it must not wait for each other.
--
-- Functions that are `security definer` are the doors of the catalog: a writer may call them and touches no table
-- itself (see 190_access.sql). All others that write are rooms behind those doors.

-- Refuses on purpose: an SQLSTATE and a word in DETAIL, which db/errors.py maps. Nobody parses the message.
create or replace function refuse(code text, word text, message text) returns void
language plpgsql stable set search_path from current as $$
begin
    raise exception using errcode = code, detail = word, message = message;
end
$$;

-- Refuses an argument that must not be null, by its name. Errors: 22004 null_argument.
create or replace function refuse_null(argument text, missing boolean) returns void
language plpgsql stable set search_path from current as $$
begin
    if missing then
        perform refuse('22004', 'null_argument', format('%s must not be null', argument));
    end if;
end
$$;

-- The id of a collection. Errors: 23503 unknown_collection.
create or replace function require_collection(wanted text) returns uuid
language plpgsql stable set search_path from current as $$
declare
    home uuid := (select id from collection where key = wanted);
begin
    if home is null then
        perform refuse('23503', 'unknown_collection', format('no collection %s', coalesce(wanted, 'null')));
    end if;
    return home;
end
$$;

-- Serialises prepare, retry, claim and fail of one release. Locks: release.
create or replace function lock_release(collection_key text, release_key text) returns void
language plpgsql set search_path from current as $$
begin
    perform pg_advisory_xact_lock(hashtextextended(
        format('geogenius release %s %s %s', current_schema(), collection_key, release_key), 0
    ));
end
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
language plpgsql set search_path from current as $$
begin
    perform pg_advisory_xact_lock(hashtextextended(
        format('geogenius publication %s %s', current_schema(), collection_key), 0
    ));
end
$$;

-- Makes the numbers of publication_event grow in the order of commits, over all collections: held to the end of the
-- transaction, and taken last. Locks: events.
create or replace function lock_events() returns void
language plpgsql set search_path from current as $$
begin
    perform pg_advisory_xact_lock(hashtextextended(format('geogenius events %s', current_schema()), 0));
end
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
language plpgsql security definer set search_path from current as $$
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

-- Refuses a manifest or a claim that is not one. What is inside them is checked by the types and CHECKs of the tables.
-- Locks: none. Errors: 22023 bad_manifest, bad_claim.
create or replace function check_request(wanted jsonb, claim jsonb) returns void
language plpgsql stable set search_path from current as $$
declare
    strange text := (
        select string_agg(k, ', ' order by k)
        from jsonb_object_keys(case jsonb_typeof(claim) when 'object' then claim end) k
        where not k = any (claim_keys())
    );
    blank text := (
        select string_agg(k, ', ' order by k) from unnest(array['run_id', 'owner', 'runner_backend']) k
        where coalesce(claim ->> k, '') = ''
    );
begin
    if not coalesce(
        jsonb_typeof(wanted -> 'collection') = 'string' and jsonb_typeof(wanted -> 'release') = 'string'
            and jsonb_typeof(wanted -> 'authorities') = 'array' and jsonb_typeof(wanted -> 'area_types') = 'array'
            and jsonb_typeof(wanted -> 'sources') = 'array', false
    ) then
        perform refuse('22023', 'bad_manifest',
            'a manifest has the texts collection and release and the lists authorities, area_types and sources');
    elsif blank is not null then
        perform refuse('22023', 'bad_claim', format('a claim needs %s', blank));
    elsif strange is not null then
        perform refuse('22023', 'bad_claim', format('a claim does not have %s', strange));
    elsif not (claim ->> 'run_id') ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        perform refuse('22023', 'bad_claim', 'run_id is not a uuid');
    end if;
end
$$;

-- Whether readers have ever seen this release. Locks: none.
create or replace function was_published(release uuid) returns boolean
language plpgsql stable set search_path from current as $$
begin
    return exists (select from publication p where p.release_id = release)
        or exists (select from publication p where p.previous_release_id = release)
        or exists (select from publication_event e where e.release_id = release);
end
$$;

-- The answer to a request for a release that is known; reason null for a new one. The table of decisions: the first
-- line that fits counts. Reads only. Locks: none (the caller holds the release lock).
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
        when coalesce(beat <= catalog_now() - make_interval(secs => latest.stale_after_seconds), true)
            then 'stale_import'
        when same and latest.owner = claim ->> 'owner' then 'same_owner'
        else 'live_import'
    end;
    answer.decision := case answer.reason
        when 'same_owner' then 'enqueue' when 'completed' then 'existing' else 'error' end;
    if answer.reason <> 'protected' then
        answer.run_id := latest.id;
        answer.attempt := latest.attempt;
    end if;
    return answer;
end
$$;

-- Registers an import or says why not; a refusal writes nothing. A call repeated with the same run_id finds its run.
-- `wanted`: the manifest in normal form. `claim`: run_id, owner, runner_backend and further columns of import_run.
-- Locks: release; when registering: collection row (so that source definitions cannot change between check and write).
-- Errors: 22023 bad_manifest, bad_claim; 55000 run_id_taken; 22, 23 from types and CHECKs.
create or replace function prepare_import(wanted jsonb, claim jsonb) returns import_decision
language plpgsql security definer set search_path from current as $$
declare
    answer import_decision;
    home uuid;
begin
    perform check_request(wanted, claim);
    perform lock_release(wanted ->> 'collection', wanted ->> 'release');
    answer := judge_import(wanted, claim);
    if answer.reason is not null then
        return answer;
    end if;
    -- If this insert makes the collection, it has no sources yet; so a refusal below has still written nothing.
    insert into collection (key, created_at) values (wanted ->> 'collection', catalog_now()) on conflict do nothing;
    select id into home from collection where key = wanted ->> 'collection' for no key update;
    if source_definition_changed(wanted) then
        return row('error', 'source_definition_changed', null, null, null)::import_decision;
    end if;
    return begin_run(register_release(wanted, home), 1, 'registered', wanted, claim);
end
$$;

-- ---- 060_sources.sql -------------------------------------------------------------------------------------

-- The artifacts of a manifest, one row each, in its order. Reads nothing but its argument.
create or replace function manifest_artifact(wanted jsonb)
returns table (source jsonb, artifact jsonb, ordinal bigint)
language sql immutable as $$
    select s.value, a.value, row_number() over (order by s.ordinality, a.ordinality)
    from jsonb_array_elements(wanted -> 'sources') with ordinality s,
        jsonb_array_elements(s.value -> 'artifacts') with ordinality a
$$;

-- Whether the manifest defines a known source, vintage or file differently. A file may be corrected as long as
-- every run that selected it has failed. Locks: none (prepare_import holds the collection row).
create or replace function source_definition_changed(wanted jsonb) returns boolean
language plpgsql stable set search_path from current as $$
begin
    return exists (
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
    );
end
$$;

-- Writes the sources, vintages and files of a manifest; corrects files as source_definition_changed permits.
-- Inserts in key order, so that two registrations wait for each other instead of deadlocking. Locks: the rows.
create or replace function register_sources(wanted jsonb, collection uuid) returns void
language plpgsql set search_path from current as $$
begin
    insert into source (collection_id, source_key, provider, license, created_at)
    select distinct collection, m.source ->> 'source_key', m.source ->> 'provider', m.source ->> 'license',
        catalog_now()
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
    set format = excluded.format, sha256 = excluded.sha256, bytes = excluded.bytes, url = excluded.url
    where (artifact.format, artifact.sha256, artifact.bytes, artifact.url)
        is distinct from (excluded.format, excluded.sha256, excluded.bytes, excluded.url);
end
$$;

-- Selects the files of a run: registers what the manifest defines and keeps the definitions as they are now.
-- Locks: the rows (the caller holds the collection row).
create or replace function select_artifacts(run uuid, wanted jsonb) returns void
language plpgsql set search_path from current as $$
declare
    home uuid := (select id from collection where key = wanted ->> 'collection');
begin
    perform register_sources(wanted, home);
    insert into import_run_artifact (run_id, artifact_id, ordinal, format, sha256, bytes, url)
    select run, a.id, m.ordinal, a.format, a.sha256, a.bytes, a.url
    from manifest_artifact(wanted) m
    join source s on s.collection_id = home and s.source_key = m.source ->> 'source_key'
    join source_release v on v.source_id = s.id and v.release_key = m.source ->> 'release_key'
    join artifact a on a.source_release_id = v.id and a.logical_name = m.artifact ->> 'logical_name';
end
$$;

-- ---- 070_register.sql ------------------------------------------------------------------------------------

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

-- ---- 075_retry.sql ---------------------------------------------------------------------------------------

-- Why a failed run cannot be retried, or the answer to a repeated call; reason null if it can. The first line that fits
-- counts. Reads only. Locks: none (retry_failed holds the release lock).
create or replace function judge_retry(failed_run uuid, wanted jsonb, claim jsonb) returns import_decision
language plpgsql stable set search_path from current as $$
declare
    lost import_run;
    target release;
    latest import_run;
    answer import_decision;
    retried boolean;
begin
    select * into lost from import_run where id = failed_run;
    if not found then
        return row('error', 'not_found', null, null, null)::import_decision;
    end if;
    select * into target from release where id = lost.release_id;
    select * into latest from import_run where release_id = target.id order by attempt desc limit 1;
    -- The attempt that an earlier call with this claim made: its answer was lost.
    retried := latest.attempt = lost.attempt + 1 and latest.manifest = wanted and (
        latest.id = (claim ->> 'run_id')::uuid
        or latest.state not in ('completed', 'failed') and latest.owner = claim ->> 'owner'
    );
    answer.release_id := target.id;
    answer.reason := case
        when not exists (
            select from collection c where c.id = target.collection_id
                and (c.key, target.release_key) = (wanted ->> 'collection', wanted ->> 'release')
        ) then 'candidate_mismatch'
        when retried and latest.state = 'completed' then 'completed'
        when target.completed_at is not null or target.retired_at is not null then 'protected'
        when retried and latest.state = 'failed' then 'failed'
        when retried then 'retried'
        when latest.id <> lost.id then 'not_latest_attempt'
        when lost.state <> 'failed' then 'not_failed'
    end;
    answer.decision := case answer.reason
        when 'retried' then 'enqueue' when 'completed' then 'existing' else 'error' end;
    if answer.reason not in ('protected', 'candidate_mismatch') then
        answer.run_id := latest.id;
        answer.attempt := latest.attempt;
    end if;
    return answer;
end
$$;

-- Registers the next attempt of a release whose latest run has failed; the manifest may have changed. Or says why not;
-- a refusal writes nothing. The failed run keeps its manifest, files, figures and error. A repeated call finds the
-- attempt that the first one made.
-- Locks: release; when registering: collection row. Errors: those of prepare_import.
create or replace function retry_failed(failed_run uuid, wanted jsonb, claim jsonb) returns import_decision
language plpgsql security definer set search_path from current as $$
declare
    answer import_decision;
    lost import_run;
begin
    perform check_request(wanted, claim);
    perform lock_release_of(failed_run);
    answer := judge_retry(failed_run, wanted, claim);
    if answer.reason is not null then
        return answer;
    end if;
    perform from collection where key = wanted ->> 'collection' for no key update;
    if source_definition_changed(wanted) then
        return row('error', 'source_definition_changed', answer.release_id, null, null)::import_decision;
    end if;
    select * into lost from import_run where id = failed_run;
    update release set manifest = wanted where id = lost.release_id;
    delete from release_authority where release_id = lost.release_id;
    delete from release_area_type where release_id = lost.release_id;
    perform register_policy(lost.release_id, wanted);
    return begin_run(lost.release_id, lost.attempt + 1, 'retried', wanted, claim);
end
$$;

-- ---- 080_execution.sql -----------------------------------------------------------------------------------

-- Makes a process the one executor of a run. Repeating it with the same executor before the first phase is harmless.
-- Answers: claimed, occupied, completed, failed, missing, superseded. A claim proves that the start was accepted.
-- Locks: release, run row, lease row. Errors: 22004 null_argument.
create or replace function claim_import_execution(run uuid, executor uuid) returns text
language plpgsql security definer set search_path from current as $$
declare
    wanted import_run;
    holder import_run_lease;
begin
    perform refuse_null('executor', executor is null);
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
-- Locks: run row, lease row. Errors: those of the fence; 55000 wrong_phase for every other edge;
-- 22004 null_argument.
create or replace function advance_import(run uuid, executor uuid, next run_state, figures jsonb) returns void
language plpgsql security definer set search_path from current as $$
begin
    perform refuse_null('next', next is null), refuse_null('figures', figures is null);
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
-- Locks: lease row. Errors: 55000 lease_lost, also after the end of the run; 22004 null_argument.
create or replace function heartbeat_import(run uuid, executor uuid, news jsonb) returns void
language plpgsql security definer set search_path from current as $$
begin
    perform refuse_null('news', news is null);
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
-- Locks: run row. Errors: 22004 null_argument; 23503 unknown_run; 22023 bad_enqueue_state for `intended`, which
-- registration alone writes.
create or replace function record_enqueue(run uuid, answer enqueue_state, why text, uid text) returns void
language plpgsql security definer set search_path from current as $$
begin
    perform refuse_null('answer', answer is null);
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

-- Asks the executor of a run to stop; whether it did is told by the end of the run. Repeating it keeps the first time.
-- Answers: requested, or how the run has ended: completed, failed. Locks: run row. Errors: 23503 unknown_run.
create or replace function request_cancel(run uuid) returns text
language plpgsql security definer set search_path from current as $$
declare
    ended text;
begin
    select case when state in ('completed', 'failed') then state::text end into ended
    from import_run where id = run for no key update;
    if not found then
        perform refuse('23503', 'unknown_run', format('no run %s', run));
    end if;
    update import_run set cancel_requested_at = catalog_now()
    where id = run and ended is null and cancel_requested_at is null;
    return coalesce(ended, 'requested');
end
$$;

-- ---- 090_artifacts.sql -----------------------------------------------------------------------------------

-- Keeps what was seen of a file. Repeating an observation keeps its first time.
-- Locks: those of the fence, artifact row. Errors: those of the fence; 23503 unknown_artifact;
-- 23514 artifact_mismatch (not the reviewed file).
create or replace function record_artifact_observation(
    run uuid, executor uuid, artifact uuid, seen_sha256 text, seen_bytes bigint
) returns void
language plpgsql security definer set search_path from current as $$
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
language sql immutable parallel safe as $$ select 'staging_' || replace(run::text, '-', '') $$;

create or replace function release_table(parent text, release uuid) returns text
language sql immutable parallel safe as $$ select parent || '_' || replace(release::text, '-', '') $$;

-- Makes the empty staging table of a run, in place of an older one, and lets writers fill it by COPY. Unlogged: it
-- never outlives its run, and what a crash takes from it is noticed when it is merged (assert_staged).
-- names: [[name, kind, locale]], codes: [[code_type, code_value]], parents: [[area_key, relation_type]]; null for none.
-- Locks: those of the fence, the table. Errors: those of the fence.
create or replace function create_staging(run uuid, executor uuid) returns void
language plpgsql security definer set search_path from current as $$
declare
    writer name;
begin
    perform assert_import_write(run, executor, array['staging']::run_state[]);
    execute format('drop table if exists %I', staging_table(run));
    execute format(
        $ddl$
            create unlogged table %I (
                id bigint generated always as identity, artifact text not null, position bigint not null,
                authority text not null, area_type text not null, code text not null, name text,
                attributes jsonb not null, geom geometry(MultiPolygon, 4326) compression lz4,
                point geometry(Point, 4326), names jsonb, codes jsonb, parents jsonb
            )
        $ddl$,
        staging_table(run)
    );
    for writer in select role from catalog_role join pg_roles on rolname = role where access = 'writer' loop
        execute format('grant insert on %I to %I', staging_table(run), writer);
    end loop;
end
$$;

-- Keeps rows that cannot be imported. Repeating one keeps the first. Set-wise: the arrays have one length.
-- Locks: those of the fence, the rows. Errors: those of the fence.
create or replace function record_rejects(
    run uuid, executor uuid, artifact text, positions bigint[], reasons text[], byte_offsets bigint[], details text[]
) returns void
language plpgsql security definer set search_path from current as $$
begin
    perform assert_import_write(run, executor, array['staging']::run_state[]);
    insert into import_reject (run_id, artifact, position, reason, byte_offset, detail)
    select run, record_rejects.artifact, r.position, r.reason, r.byte_offset, left(r.detail, 200)
    from unnest(positions, reasons, byte_offsets, details) r (position, reason, byte_offset, detail)
    on conflict do nothing;
end
$$;

-- The same as importers of 0.1 call it, in a transaction that has passed the fence: with the executor of the run.
create or replace function record_rejects(
    run uuid, artifact text, positions bigint[], reasons text[], byte_offsets bigint[], details text[]
) returns void
language plpgsql security definer set search_path from current as $$
begin
    perform record_rejects(
        run, (select l.executor_id from import_run_lease l where l.run_id = run), artifact, positions, reasons,
        byte_offsets, details
    );
end
$$;

-- ---- 105_tables.sql --------------------------------------------------------------------------------------

-- Whether this schema has a table of this name. Names that are derived from ids are asked for here before they are
-- used: the search path ends in pg_temp, and what a caller made there must never be taken for ours.
create or replace function has_own_table(wanted text) returns boolean
language plpgsql stable set search_path from current as $$
begin
    return exists (
        select from pg_class
        where relnamespace = current_schema()::regnamespace and relname = wanted and relkind in ('r', 'p')
    );
end
$$;

-- The tables of which every release has one of its own.
create or replace function release_parents() returns text[]
language sql immutable parallel safe set search_path from current as $$
    select array['release_area', 'boundary', 'boundary_part', 'area_name', 'area_code', 'relation']
$$;

-- Makes one empty table of a release, standalone. The CHECKs are what the partition bounds will be, so that attaching
-- it later scans nothing. Locks: the table.
create or replace function create_release_table(parent text, release uuid, collection_key text) returns void
language plpgsql set search_path from current as $$
begin
    execute format(
        $ddl$
            create table %I (
                like %I including constraints including compression including defaults,
                constraint collection_bound check (collection_key = %L),
                constraint release_bound check (release_id = %L::uuid)
            )
        $ddl$,
        release_table(parent, release), parent, collection_key, release
    );
end
$$;

-- Makes the empty tables of a release, standalone, in place of older ones. Locks: the tables.
create or replace function create_release_tables(release uuid, collection_key text) returns void
language plpgsql set search_path from current as $$
begin
    perform drop_release_tables(release);
    perform create_release_table(parent, release, collection_key) from unnest(release_parents()) parent;
end
$$;

-- Drops the tables of a release that was never completed. Locks: the tables.
create or replace function drop_release_tables(release uuid) returns void
language plpgsql set search_path from current as $$
begin
    execute (
        select 'drop table if exists ' || string_agg(quote_ident(release_table(parent, release)), ', ')
        from unnest(release_parents()) parent
    );
end
$$;

-- Refuses a release whose tables were not made yet: a phase was passed without its work. Locks: none.
-- Errors: 55000 not_merged.
create or replace function assert_merged(release uuid) returns void
language plpgsql stable set search_path from current as $$
begin
    if not (select bool_and(has_own_table(release_table(parent, release))) from unnest(release_parents()) parent) then
        perform refuse('55000', 'not_merged', format('release %s was not merged yet', release));
    end if;
end
$$;

-- Which of the further tables of a release hold rows. Reads only.
create or replace function filled_tables(release uuid) returns text[]
language plpgsql stable set search_path from current as $$
declare
    filled text[] := '{}';
    parent text;
    holds boolean;
begin
    foreach parent in array array['boundary_part', 'area_name', 'area_code', 'relation'] loop
        execute format('select exists (select from %I)', release_table(parent, release)) into holds;
        if holds then
            filled := filled || parent;
        end if;
    end loop;
    return filled;
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

-- Finds the staged rows that share their area key, among rows with a usable geometry: temporary table `repeated`.
-- `occurrence` numbers the rows of one source as the manifest has them, `contribution` the sources of a key, whatever
-- the order of staging. Rows of a file that the run does not know come last, as one source. Locks: none.
create or replace function find_repeated(run uuid, staging text) returns void
language plpgsql set search_path from current as $$
begin
    drop table if exists pg_temp.repeated;
    execute format(
        $sql$
            create temporary table repeated on commit drop as
            with file as (
                select a.logical_name as artifact, u.ordinal, min(u.ordinal) over (partition by v.source_id) as source
                from import_run_artifact u
                join artifact a on a.id = u.artifact_id
                join source_release v on v.id = a.source_release_id
                where u.run_id = %L
            ), several as materialized (
                select area_key(s.authority, s.area_type, s.code) as area_key from %I s group by 1 having count(*) > 1
            )
            select s.id, s.artifact, s.position, k.area_key,
                row_number() over same_source as occurrence,
                first_value(s.position) over same_source as first_position,
                first_value(s.artifact) over same_source as first_artifact,
                dense_rank() over (partition by k.area_key order by f.source) as contribution
            from %I s
            join several k on k.area_key = area_key(s.authority, s.area_type, s.code)
            left join file f on f.artifact = s.artifact
            where not exists (select from pg_temp.repaired r where r.id = s.id and r.geom is null)
            window same_source as (partition by k.area_key, f.source order by f.ordinal, s.artifact, s.position, s.id)
        $sql$,
        run, staging, staging
    );
    analyze pg_temp.repeated;
end
$$;

-- Keeps as rejects the rows without a usable geometry, and all but the first row of each key within a source.
-- Locks: the rows.
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
    from pg_temp.repeated r where r.occurrence > 1
    on conflict do nothing;
end
$$;

-- ---- 112_converge.sql ------------------------------------------------------------------------------------

-- What several sources say of one area, united: temporary table `united`, one row for each key with more than one
-- contribution, under the id of its first row. The first source that has a name, a boundary or a point gives it; of
-- attributes of one name, the first source's value stays. `boundary_id` is the staged row whose boundary is taken.
-- Locks: none.
create or replace function unite_staged(staging text) returns void
language plpgsql set search_path from current as $$
begin
    drop table if exists pg_temp.united;
    execute format(
        $sql$
            create temporary table united on commit drop as
            with contributed as (
                select d.area_key, d.contribution, s.id, s.name, s.attributes, s.point, coalesce(r.geom, s.geom) as geom
                from pg_temp.repeated d join %I s on s.id = d.id left join pg_temp.repaired r on r.id = s.id
                where d.occurrence = 1 and d.area_key in (
                    select area_key from pg_temp.repeated where occurrence = 1 and contribution > 1
                )
            ), attribute as (
                select c.area_key, jsonb_object_agg(e.key, e.value order by c.contribution desc) as united
                from contributed c cross join lateral jsonb_each(c.attributes) e group by c.area_key
            )
            select c.area_key, (array_agg(c.id order by c.contribution))[1] as id,
                (array_agg(c.name order by c.contribution) filter (where c.name is not null))[1] as name,
                (array_agg(c.point order by c.contribution) filter (where c.point is not null))[1] as point,
                (array_agg(c.geom order by c.contribution) filter (where c.geom is not null))[1] as geom,
                (array_agg(c.id order by c.contribution) filter (where c.geom is not null))[1] as boundary_id,
                coalesce(a.united, '{}') as attributes,
                count(c.geom) - 1 as boundaries_unused
            from contributed c left join attribute a on a.area_key = c.area_key
            group by c.area_key, a.united
        $sql$,
        staging
    );
    analyze pg_temp.united;
end
$$;

-- The staged rows that are not rejects, as a query: each adds to the area of its key, `first` makes it.
create or replace function contribution_query(staging text) returns text
language sql immutable set search_path from current as $$
    select format(
        $sql$
            select s.*, area_key(s.authority, s.area_type, s.code) as area_key, coalesce(r.geom, s.geom) as final,
                r.id is not null as repaired, r.reason, coalesce(d.contribution, 1) = 1 as first
            from %I s
            left join pg_temp.repaired r on r.id = s.id
            left join pg_temp.repeated d on d.id = s.id
            where (r.id is null or r.geom is not null) and coalesce(d.occurrence, 1) = 1
        $sql$,
        staging
    )
$$;

-- ---- 113_fill.sql ----------------------------------------------------------------------------------------

-- Fills the areas of a release, numbered in the order of their keys. Locks: the table.
create or replace function fill_areas(staging text, release uuid, collection_key text) returns void
language plpgsql set search_path from current as $$
declare
    areas text := release_table('release_area', release);
begin
    execute format(
        $sql$
            insert into %I (collection_key, release_id, area_number, area_key, authority, area_type, code, name,
                centroid, attributes, artifact, position)
            select $1, $2, row_number() over (order by k.area_key), k.area_key, k.authority, k.area_type, k.code,
                case when u.id is null then k.name else u.name end,
                case when u.id is null then coalesce(ST_PointOnSurface(k.final), k.point)
                    else coalesce(ST_PointOnSurface(u.geom), u.point) end::geography,
                coalesce(u.attributes, k.attributes), k.artifact, k.position
            from (%s) k left join pg_temp.united u on u.id = k.id
            where k.first
        $sql$,
        areas, contribution_query(staging)
    ) using collection_key, release;
    execute format('analyze %I (area_key)', areas);
end
$$;

-- Fills the boundaries of a release and the pieces of those with many vertices. Locks: the tables.
create or replace function fill_boundaries(staging text, release uuid, collection_key text) returns void
language plpgsql set search_path from current as $$
declare
    boundaries text := release_table('boundary', release);
begin
    execute format(
        $sql$
            insert into %I (collection_key, release_id, area_number, geom, repaired, repair_reason, divided)
            select $1, $2, a.area_number, k.final, k.repaired, k.reason, ST_NPoints(k.final) > 256
            from (%s) k join %I a on a.area_key = k.area_key
            where k.final is not null and not exists (
                select from pg_temp.united u where u.area_key = k.area_key and u.boundary_id <> k.id
            )
        $sql$,
        boundaries, contribution_query(staging), release_table('release_area', release)
    ) using collection_key, release;
    execute format(
        $sql$
            insert into %I (collection_key, release_id, area_number, geom)
            select b.collection_key, b.release_id, b.area_number, piece
            from %I b cross join lateral ST_Subdivide(b.geom, 256) piece
            where b.divided and ST_Dimension(piece) = 2
        $sql$,
        release_table('boundary_part', release), boundaries
    );
end
$$;

-- Fills the names and codes beside the official name and the own code; each once, whichever sources give it.
-- Locks: the tables.
create or replace function fill_names_and_codes(staging text, release uuid, collection_key text) returns void
language plpgsql set search_path from current as $$
begin
    execute format(
        $sql$
            insert into %I (collection_key, release_id, area_number, name, kind, locale)
            select distinct $1, $2, a.area_number, n.name, n.kind, n.locale
            from (%s) k
            join %I a on a.area_key = k.area_key
            cross join lateral (
                select x ->> 0, x ->> 1, x ->> 2 from jsonb_array_elements(k.names) x
                union all
                select k.name, 'official', null where not k.first and k.name is not null
            ) n (name, kind, locale)
            where (k.names is not null or not k.first)
                and (n.name, n.kind, n.locale) is distinct from (a.name, 'official', null)
        $sql$,
        release_table('area_name', release), contribution_query(staging), release_table('release_area', release)
    ) using collection_key, release;
    execute format(
        $sql$
            insert into %I (collection_key, release_id, area_number, code_type, code_value)
            select distinct $1, $2, a.area_number, c ->> 0, c ->> 1
            from (%s) k
            join %I a on a.area_key = k.area_key
            cross join lateral jsonb_array_elements(k.codes) c
            where k.codes is not null and (c ->> 0, c ->> 1) is distinct from (a.authority, a.code)
        $sql$,
        release_table('area_code', release), contribution_query(staging), release_table('release_area', release)
    ) using collection_key, release;
end
$$;

-- ---- 115_merge.sql ---------------------------------------------------------------------------------------

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

-- ---- 117_relate.sql --------------------------------------------------------------------------------------

-- Edges that the rows of a release assert: temporary table `asserted`, child and parent by number; `parent` null where
-- the release has no such area. Rows that were rejected assert nothing. Locks: none.
create or replace function find_asserted(run uuid, release uuid) returns void
language plpgsql set search_path from current as $$
begin
    drop table if exists pg_temp.asserted;
    execute format(
        $sql$
            create temporary table asserted on commit drop as
            select c.area_number as child, p.area_number as parent, e ->> 1 as relation_type, c.area_key as child_key,
                e ->> 0 as parent_key, s.artifact, s.position
            from %1$I s
            join %2$I c on c.area_key = area_key(s.authority, s.area_type, s.code)
            cross join lateral jsonb_array_elements(s.parents) e
            left join %2$I p on p.area_key = e ->> 0
            where s.parents is not null and not exists (
                select from import_reject x where x.run_id = $1 and x.artifact = s.artifact and x.position = s.position
            )
        $sql$,
        staging_table(run), release_table('release_area', release)
    ) using run;
end
$$;

-- Refuses asserted edges to areas that the release does not have, and of an area to itself.
-- Locks: none. Errors: 23503 unknown_parent.
create or replace function check_asserted() returns void
language plpgsql stable set search_path from current as $$
declare
    wrong bigint;
    first text;
begin
    select count(*), string_agg(e.sentence, '; ' order by e.artifact, e.position) filter (where e.place <= 5)
    into wrong, first
    from (
        select a.artifact, a.position, row_number() over (order by a.artifact, a.position) as place,
            format('%s -> %s (%s position %s)', a.child_key, a.parent_key, a.artifact, a.position) as sentence
        from pg_temp.asserted a where a.parent is null or a.parent = a.child
    ) e;
    if wrong > 0 then
        perform refuse('23503', 'unknown_parent',
            format('%s parents are no other areas of the release: %s', wrong, first));
    end if;
end
$$;

-- Refuses to relate a release with areas whose staging table is empty: a crash of the server took what rows asserted.
-- Locks: none. Errors: 55000 staging_lost.
create or replace function assert_staging_left(run uuid, release uuid) returns void
language plpgsql stable set search_path from current as $$
declare
    lost boolean := not has_own_table(staging_table(run));
begin
    if not lost then
        execute format(
            'select exists (select from %I) and not exists (select from %I)',
            release_table('release_area', release), staging_table(run)
        ) into lost;
    end if;
    if lost then
        perform refuse('55000', 'staging_lost', 'the staged rows are gone: the database crashed meanwhile');
    end if;
end
$$;

-- Builds the relations of the release: those that its rows assert (of several kinds between two areas the strongest),
-- then, if wanted, the measured ones. Repeating it builds them anew.
-- Locks: those of the fence, the tables. Errors: those of the fence; 55000 not_merged, staging_lost; 23503
-- unknown_parent.
create or replace function relate_release(run uuid, executor uuid, want_measured boolean)
returns table (asserted bigint, measured bigint)
language plpgsql security definer set search_path from current set work_mem = '64MB' as $$
declare
    target uuid := assert_import_write(run, executor, array['relating']::run_state[]);
    collection_key text := (
        select c.key from release r join collection c on c.id = r.collection_id where r.id = target
    );
begin
    perform assert_merged(target);
    perform assert_staging_left(run, target);
    perform find_asserted(run, target);
    perform check_asserted();
    execute format('truncate %I', release_table('relation', target));
    execute format(
        $sql$
            insert into %I
            select distinct on (a.parent, a.child) $1, $2, a.parent, a.child, a.relation_type
            from pg_temp.asserted a
            order by a.parent, a.child,
                array_position(array['contains', 'mostly_contains', 'overlaps'], a.relation_type)
        $sql$,
        release_table('relation', target)
    ) using collection_key, target;
    get diagnostics asserted = row_count;
    measured := case when want_measured then measure_relations(target, collection_key) else 0 end;
    return next;
end
$$;

-- ---- 118_measure.sql -------------------------------------------------------------------------------------

-- Intersects the boundaries of areas whose types differ in rank: the lower rank is the parent. Areas are cut in degrees
-- and measured on the ellipsoid; those that only touch do not count. A child that lies wholly in a piece of its parent
-- is not cut. Asserted edges stay as they are. Gives the number of edges.
-- Locks: the tables.
create or replace function measure_relations(release uuid, collection_key text) returns bigint
language plpgsql set search_path from current as $$
declare
    edges bigint;
begin
    if (select count(*) < 2 from release_area_type t where t.release_id = release) then
        return 0;
    end if;
    perform index_release_table('boundary', release, 'geom', 'using gist (geom)');
    perform index_release_table('boundary_part', release, 'geom', 'using gist (geom)');
    drop table if exists pg_temp.surface;
    execute format(
        $sql$
            create temporary table surface on commit drop as
            select a.area_number, t.rank, ST_Area(ST_Segmentize(b.geom, 0.25)::geography) as m2
            from %I a
            join %I b on b.area_number = a.area_number
            join area_type k on k.key = a.area_type
            join release_area_type t on t.area_type_id = k.id and t.release_id = $1
        $sql$,
        release_table('release_area', release), release_table('boundary', release)
    ) using release;
    analyze pg_temp.surface;
    execute format(
        $sql$
            insert into %1$I
            select $1, $2, m.parent, m.child,
                case when m.shared >= 0.999 * m.child_m2 then 'contains'
                    when m.shared >= 0.5 * m.child_m2 then 'mostly_contains' else 'overlaps' end,
                m.shared, least(1, m.shared / nullif(m.parent_m2, 0)), least(1, m.shared / nullif(m.child_m2, 0))
            from (
                select p.area_number as parent, c.area_number as child, p.m2 as parent_m2, c.m2 as child_m2, sum(
                    case when ST_Covers(g.geom, b.geom) then c.m2
                        else ST_Area(ST_Segmentize(ST_Intersection(g.geom, b.geom), 0.25)::geography) end
                ) as shared
                from pg_temp.surface c
                join %2$I b on b.area_number = c.area_number
                cross join lateral (
                    select w.area_number, w.geom from %2$I w where not w.divided and w.geom && b.geom
                    union all
                    select w.area_number, w.geom from %3$I w where w.geom && b.geom
                ) g
                join pg_temp.surface p on p.area_number = g.area_number and p.rank < c.rank -- before the dear question
                where ST_Intersects(g.geom, b.geom)
                group by p.area_number, c.area_number, p.m2, c.m2
            ) m
            where m.shared > 0 and m.parent_m2 > 0 and m.child_m2 > 0 and not exists (
                select from %1$I x where x.parent_number = m.parent and x.child_number = m.child
            )
        $sql$,
        release_table('relation', release), release_table('boundary', release), release_table('boundary_part', release)
    ) using collection_key, release;
    get diagnostics edges = row_count;
    return edges;
end
$$;

-- ---- 120_index.sql ---------------------------------------------------------------------------------------

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

-- ---- 128_faults.sql --------------------------------------------------------------------------------------

-- The areas of a release, counted by type; its tables need not be attached. Reads only.
create or replace function count_areas(release uuid) returns jsonb
language plpgsql stable set search_path from current as $$
declare
    counts jsonb;
begin
    execute format(
        $sql$
            select coalesce(jsonb_object_agg(t.area_type, t.many), '{}')
            from (select area_type, count(*) as many from %I group by 1) t
        $sql$,
        release_table('release_area', release)
    ) into counts;
    return counts;
end
$$;

-- What is unsound in the tables of a release: one sentence per kind of fault. Reads only.
create or replace function release_faults(release uuid) returns setof text
language plpgsql stable set search_path from current as $$
begin
    return query execute format(
        $sql$
            with area as (
                select a.area_number, w.requires_geometry, w.area_type_id is null as strange_type,
                    g.authority_id is null as strange_authority
                from %1$I a
                left join (area_type t join release_area_type w on w.area_type_id = t.id and w.release_id = $1)
                    on t.key = a.area_type
                left join (authority k join release_authority g on g.authority_id = k.id and g.release_id = $1)
                    on k.key = a.authority
            ), fault (many, sentence) as (
                select (not exists (select from area))::integer, 'the release has no areas'
                union all
                select count(*), count(*) || ' areas lack the boundary that their type requires' from area a
                where a.requires_geometry and not exists (select from %2$I b where b.area_number = a.area_number)
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
        $sql$,
        release_table('release_area', release), release_table('boundary', release)
    ) using release;
end
$$;

-- Whether a release can be read fast: the phase before verification may have been passed without its work.
create or replace function release_unindexed(release uuid) returns setof text
language sql stable set search_path from current as $$
    select 'the release is not indexed'
    where not exists (
        select from pg_index
        where indrelid = to_regclass(release_table('release_area', release)) and indisunique and indisvalid
    )
$$;

-- Rows of a release that refer to areas it does not have: one sentence per table. Without foreign keys nothing else
-- proves it. Reads only.
create or replace function release_strays(release uuid) returns setof text
language plpgsql stable set search_path from current as $$
declare
    checked record;
    strays bigint;
begin
    for checked in
        select * from (values
            ('boundary', 'area_number'), ('boundary_part', 'area_number'), ('area_name', 'area_number'),
            ('area_code', 'area_number'), ('relation', 'parent_number'), ('relation', 'child_number')
        ) c (parent, number)
    loop
        execute format(
            'select count(*) from %I x where not exists (select from %I a where a.area_number = x.%I)',
            release_table(checked.parent, release), release_table('release_area', release), checked.number
        ) into strays;
        if strays > 0 then
            return next format('%s rows of %s have a %s that no area has', strays, checked.parent, checked.number);
        end if;
    end loop;
end
$$;

-- ---- 130_verify.sql --------------------------------------------------------------------------------------

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

-- ---- 140_attach.sql --------------------------------------------------------------------------------------

-- Attaches one table of a release where readers find it, making the collection's partition first if it is missing.
-- Never CREATE TABLE ... PARTITION OF: that would lock out readers; attaching with matching CHECKs neither scans nor
-- waits.
-- Locks: root and collection partition (both SHARE UPDATE EXCLUSIVE: readers pass), the release's own table.
create or replace function attach_release_table(parent text, release uuid, collection collection) returns void
language plpgsql set search_path from current as $$
declare
    middle text := collection_table(parent, collection.id);
    leaf text := release_table(parent, release);
begin
    if not has_own_table(middle) then
        execute format('lock table %I in share update exclusive mode', parent);
    end if;
    if not has_own_table(middle) then
        execute format(
            $ddl$
                create table %I (
                    like %I including constraints including compression including defaults,
                    constraint collection_bound check (collection_key = %L)
                ) partition by list (release_id)
            $ddl$,
            middle, parent, collection.key
        );
        execute format('alter table %I attach partition %I for values in (%L)', parent, middle, collection.key);
    end if;
    execute format('alter table %I attach partition %I for values in (%L)', middle, leaf, release);
end
$$;

-- The name of the partition of a collection.
create or replace function collection_table(parent text, collection uuid) returns text
language sql immutable parallel safe as $$
    select parent || '_of_' || replace(collection::text, '-', '')
$$;

-- Attaches the tables of a release, always in the same order. Locks: those of attach_release_table.
create or replace function attach_release(release uuid) returns void
language plpgsql set search_path from current as $$
declare
    home collection;
begin
    select c.* into home from release r join collection c on c.id = r.collection_id where r.id = release;
    perform attach_release_table(parent, release, home) from unnest(release_parents()) parent;
end
$$;

-- ---- 150_finish.sql --------------------------------------------------------------------------------------

-- Ends a run: evidence moves from the lease to the run, the lease goes. Locks: held by the caller (lock_run).
create or replace function end_run(run uuid, ending run_state, figures jsonb, why jsonb) returns void
language plpgsql set search_path from current as $$
begin
    update import_run i
    set state = ending, completed_at = catalog_now(), error = why, metrics = i.metrics || figures,
        executor_id = l.executor_id, execution_started_at = l.execution_started_at,
        last_heartbeat_at = l.heartbeat_at, last_progress_at = l.progress_at, progress = l.progress
    from import_run_lease l
    where i.id = run and l.run_id = run;
    delete from import_run_lease where run_id = run;
end
$$;

-- Completes a run and its release in the caller's transaction.
-- Locks: run row, lease row (FOR UPDATE), release tables as in attach_release_table.
-- Errors: those of the fence; 23514 artifact_unobserved, not_verified; 22004 null_argument.
create or replace function finish_import(run uuid, executor uuid, phase run_state, figures jsonb) returns uuid
language plpgsql set search_path from current as $$
declare
    target uuid;
begin
    perform refuse_null('figures', figures is null);
    perform lock_run(run);
    target := assert_import_write(run, executor, array[phase]);
    if exists (select from import_run_artifact where run_id = run and observed_at is null) then
        perform refuse('23514', 'artifact_unobserved', format('run %s has files that were never seen', run));
    elsif not exists (select from import_run where id = run and (verification ->> 'ok')::boolean) then
        perform refuse('23514', 'not_verified', format('run %s did not pass verification', run));
    end if;
    perform attach_release(target);
    execute format('drop table if exists %I', staging_table(run));
    update release set completed_at = catalog_now(), filled = filled_tables(target) where id = target;
    perform end_run(run, 'completed', figures, null);
    return target;
end
$$;

-- Completes a run from phase verifying; the publication stays as it is. A second call is refused: read the run.
-- Locks and errors: finish_import.
create or replace function complete_import(run uuid, executor uuid, figures jsonb) returns uuid
language sql security definer set search_path from current as $$
    select finish_import(run, executor, 'verifying', figures)
$$;

-- Records the failure of a run and drops its tables. `why`: {phase, reason, message, evidence}. A second failure
-- changes nothing: the first evidence stays. A run that nobody claimed takes the caller's executor.
-- Locks: release, run row, lease row, the run's own tables. Waits for a fenced write in flight.
-- Errors: 22004 null_argument; 23503 unknown_run; 55000 run_completed, lease_lost.
create or replace function fail_import(run uuid, executor uuid, why jsonb) returns void
language plpgsql security definer set search_path from current as $$
declare
    failing import_run;
    holder uuid;
begin
    perform refuse_null('executor', executor is null), refuse_null('why', why is null);
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

-- ---- 152_publish.sql -------------------------------------------------------------------------------------

-- Points readers of a collection at a release and logs it; false if they see it already, and then nothing happens.
-- Locks: publication row, events (the caller holds the publication lock).
create or replace function move_pointer(target uuid, how text) returns boolean
language plpgsql set search_path from current as $$
declare
    home uuid := (select r.collection_id from release r where r.id = target);
    seen uuid := (select p.release_id from publication p where p.collection_id = home);
    moment timestamptz;
begin
    if seen = target then
        return false;
    end if;
    perform lock_events();
    -- A clock that was set back must not reorder the history, which release_at reads by time.
    moment := greatest(catalog_clock(), (select max(occurred_at) from publication_event where collection_id = home));
    insert into publication (collection_id, release_id, previous_release_id, published_at)
    values (home, target, seen, moment)
    on conflict (collection_id) do update
    set release_id = excluded.release_id, previous_release_id = excluded.previous_release_id,
        published_at = excluded.published_at;
    insert into publication_event (collection_id, release_id, previous_release_id, kind, occurred_at)
    values (home, target, seen, how, moment);
    return true;
end
$$;

-- Completes a run from phase publishing and publishes its release, or neither. A second call is refused: read the run.
-- Locks: publication, then finish_import. Errors: those of finish_import.
create or replace function publish_import(run uuid, executor uuid) returns uuid
language plpgsql security definer set search_path from current as $$
declare
    target uuid;
begin
    perform lock_publication(c.key)
    from import_run i join release r on r.id = i.release_id join collection c on c.id = r.collection_id
    where i.id = run;
    target := finish_import(run, executor, 'publishing', '{}');
    perform move_pointer(target, 'published');
    return target;
end
$$;

-- The pointer of a collection and whether this call moved it: the answer of publish_release and rollback_publication.
create or replace function publication_answer(wanted text, moved boolean)
returns table (
    collection_key text, release_id uuid, release_key text, previous_release_id uuid, published_at timestamptz,
    moved boolean
)
language sql stable set search_path from current as $$
    select c.key, p.release_id, r.release_key, p.previous_release_id, p.published_at, publication_answer.moved
    from collection c join publication p on p.collection_id = c.id join release r on r.id = p.release_id
    where c.key = wanted
$$;

-- Publishes a completed release. A release that readers see already stays as it is: no event, and roll back still goes
-- where it went.
-- Locks: publication, publication row, events.
-- Errors: 23503 unknown_release; 55000 release_retired, release_live, release_incomplete.
create or replace function publish_release(release uuid)
returns table (
    collection_key text, release_id uuid, release_key text, previous_release_id uuid, published_at timestamptz,
    moved boolean
)
language plpgsql security definer set search_path from current as $$
declare
    wanted release;
    home text := (select c.key from release r join collection c on c.id = r.collection_id where r.id = release);
begin
    if home is null then
        perform refuse('23503', 'unknown_release', format('no release %s', release));
    end if;
    perform lock_publication(home);
    select * into wanted from release r where r.id = release;
    if wanted.retired_at is not null then
        perform refuse('55000', 'release_retired', format('release %s of %s is retired', wanted.release_key, home));
    elsif exists (select from import_run_lease l where l.release_id = release) then
        perform refuse('55000', 'release_live', format('release %s of %s is being imported', wanted.release_key, home));
    elsif wanted.completed_at is null then
        perform refuse('55000', 'release_incomplete',
            format('release %s of %s is not complete', wanted.release_key, home));
    end if;
    moved := move_pointer(release, 'published');
    return query select a.* from publication_answer(home, publish_release.moved) a;
end
$$;

-- Points readers at the release they saw before; a second roll back goes forward again. So that a repeated call cannot
-- do that by accident, `leaving` says which release readers are to leave; null leaves whatever they see.
-- Locks: publication, publication row, events.
-- Errors: 23503 unknown_collection; 23514 no_previous_release; 55000 pointer_moved.
create or replace function rollback_publication(wanted text, leaving uuid)
returns table (
    collection_key text, release_id uuid, release_key text, previous_release_id uuid, published_at timestamptz,
    moved boolean
)
language plpgsql security definer set search_path from current as $$
declare
    held publication;
begin
    perform require_collection(wanted);
    perform lock_publication(wanted);
    select p.* into held from publication p join collection c on c.id = p.collection_id where c.key = wanted;
    if leaving is not null and held.release_id is distinct from leaving then
        perform refuse('55000', 'pointer_moved',
            format('readers of %s do not see release %s any more', wanted, leaving));
    elsif held.previous_release_id is null then
        perform refuse('23514', 'no_previous_release', format('%s has no previous release to go back to', wanted));
    end if;
    moved := move_pointer(held.previous_release_id, 'rolled_back');
    return query select a.* from publication_answer(wanted, rollback_publication.moved) a;
end
$$;

-- ---- 154_retire.sql --------------------------------------------------------------------------------------

-- Retires old releases: of those that are complete, the published one and the `keep` - 1 newest others stay. Gives the
-- ids that were retired. Their tables stay attached until the sweep detaches them (ADR 0016); readers find them no
-- more. Candidates are never touched. Repeating it retires nothing more.
-- Locks: publication, release rows, publication row. Errors: 23503 unknown_collection; 22023 bad_keep.
create or replace function retire_releases(wanted text, keep integer) returns setof uuid
language plpgsql security definer set search_path from current as $$
declare
    home uuid := require_collection(wanted);
    retired uuid[];
begin
    if not coalesce(keep >= 1, false) then
        perform refuse('22023', 'bad_keep', format('keep must be at least 1, not %s', coalesce(keep::text, 'null')));
    end if;
    perform lock_publication(wanted);
    with old as (
        select r.id from release r
        where r.collection_id = home and r.completed_at is not null and r.retired_at is null
            and not exists (select from publication p where p.release_id = r.id)
        order by r.completed_at desc, r.created_at desc, r.id
        offset keep - 1
    ), changed as (
        update release r set retired_at = catalog_clock() from old where r.id = old.id returning r.id
    )
    select array_agg(id) into retired from changed;
    update publication set previous_release_id = null
    where collection_id = home and previous_release_id = any (retired);
    return query select unnest(retired);
end
$$;

-- Says that an area of a collection is no more, and which one took its place, if any; whatever releases contain it.
-- Repeating it keeps the first time and takes the new successor.
-- Locks: the row. Errors: 23503 unknown_collection; 22023 bad_successor.
create or replace function retire_area(wanted text, area text, successor text) returns void
language plpgsql security definer set search_path from current as $$
declare
    home uuid := require_collection(wanted);
begin
    if successor = area then
        perform refuse('22023', 'bad_successor', format('%s cannot succeed itself', area));
    end if;
    insert into area_retirement (collection_id, area_key, retired_at, successor_key)
    values (home, area, catalog_now(), successor)
    on conflict (collection_id, area_key) do update set successor_key = excluded.successor_key;
end
$$;

-- Takes back what retire_area said; false if nothing was said. Locks: the row. Errors: 23503 unknown_collection.
create or replace function restore_area(wanted text, area text) returns boolean
language plpgsql security definer set search_path from current as $$
declare
    home uuid := require_collection(wanted);
begin
    delete from area_retirement where collection_id = home and area_key = area;
    return found;
end
$$;

-- ---- 155_guards.sql --------------------------------------------------------------------------------------

-- What no function may do by mistake, nor a hand: the tables refuse it themselves.

-- In the order in which registrations and ends take them.
lock table release, import_run, publication in share row exclusive mode;

-- A run that has ended never changes again. Errors: 55000 run_ended.
create or replace function guard_ended_run() returns trigger
language plpgsql set search_path from current as $$
begin
    perform refuse('55000', 'run_ended', format('run %s is %s and never changes again', old.id, old.state));
    return null;
end
$$;
create or replace trigger import_run_ended before update on import_run
for each row when (old.completed_at is not null) execute function guard_ended_run();

-- A complete release never changes again, but that it is retired once. Errors: 55000 release_frozen.
create or replace function guard_complete_release() returns trigger
language plpgsql set search_path from current as $$
begin
    if (new.id, new.collection_id, new.release_key, new.manifest, new.created_at, new.completed_at, new.filled)
        is distinct from
        (old.id, old.collection_id, old.release_key, old.manifest, old.created_at, old.completed_at, old.filled)
        or old.retired_at is not null
    then
        perform refuse('55000', 'release_frozen',
            format('release %s is complete and never changes again', old.release_key));
    end if;
    return new;
end
$$;
create or replace trigger release_complete before update on release
for each row when (old.completed_at is not null) execute function guard_complete_release();

-- The pointer leads to complete releases that are not retired. Errors: 55000 release_incomplete, release_retired.
create or replace function guard_publication() returns trigger
language plpgsql set search_path from current as $$
declare
    target release;
begin
    select * into target from release where id = new.release_id;
    if target.completed_at is null then
        perform refuse('55000', 'release_incomplete', format('release %s is not complete', target.release_key));
    elsif target.retired_at is not null then
        perform refuse('55000', 'release_retired', format('release %s is retired', target.release_key));
    end if;
    return new;
end
$$;
create or replace trigger publication_of_complete_release before insert or update on publication
for each row execute function guard_publication();

-- Readers are never left with a retired release. Errors: 55000 release_published.
create or replace function guard_retirement() returns trigger
language plpgsql set search_path from current as $$
begin
    if exists (select from publication where release_id = new.id) then
        perform refuse('55000', 'release_published', format('release %s is published', new.release_key));
    end if;
    return new;
end
$$;
create or replace trigger release_retired before update on release
for each row when (old.retired_at is null and new.retired_at is not null) execute function guard_retirement();

-- ---- 160_status.sql --------------------------------------------------------------------------------------

-- A run as people and operators read it. While it lives, executor, heartbeat and progress come from its lease.
create or replace view import_run_status as
select
    i.id as run_id, i.release_id, c.key as collection_key, r.release_key, i.attempt, i.state, i.owner, i.runner_backend,
    i.publish,
    exists (select from publication p where p.release_id = i.release_id) and i.state = 'completed' as published,
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
    catalog_now() as read_at,
    i.gates
from import_run i
join release r on r.id = i.release_id
join collection c on c.id = r.collection_id
left join import_run_lease l on l.run_id = i.id;

-- The releases of all collections, with what became of each.
create or replace view release_status as
select
    c.key as collection_key, r.id as release_id, r.release_key, r.created_at, r.completed_at, r.retired_at,
    coalesce(p.release_id = r.id, false) as published, coalesce(p.previous_release_id = r.id, false) as previous,
    i.id as run_id, i.attempt, i.state, (i.verification ->> 'area_count')::bigint as area_count
from release r
join collection c on c.id = r.collection_id
left join publication p on p.collection_id = r.collection_id
left join lateral (select * from import_run x where x.release_id = r.id order by x.attempt desc limit 1) i on true;

-- ---- 165_history.sql -------------------------------------------------------------------------------------

-- The release that readers of a collection see; null for an unknown collection or one without.
create or replace function published_release(wanted text) returns uuid
language sql stable parallel safe set search_path from current as $$
    select p.release_id from publication p join collection c on c.id = p.collection_id where c.key = wanted
$$;

-- Every move of a pointer, numbered in the order of commits: a reader that has seen a number has seen all below it.
create or replace view publication_history as
select e.sequence, c.key as collection_key, e.kind, r.release_key, e.release_id, e.previous_release_id, e.occurred_at
from publication_event e
join collection c on c.id = e.collection_id
join release r on r.id = e.release_id;

-- The release that readers of a collection saw at a moment; null for an unknown collection, or before the first
-- publication. Its tables may be gone meanwhile: see release_status. Reads publication_event_of_collection.
create or replace function release_at(wanted text, moment timestamptz) returns uuid
language sql stable parallel safe set search_path from current as $$
    select h.release_id from publication_history h
    where h.collection_key = wanted and h.occurred_at <= moment
    order by h.sequence desc limit 1
$$;

-- The pointer of a collection, read when no move of it is in flight: what a caller asks whose reply was lost. No row
-- for an unknown collection or one without a published release.
-- Locks: publication.
create or replace function settled_publication(wanted text)
returns table (
    collection_key text, release_id uuid, release_key text, previous_release_id uuid, published_at timestamptz,
    moved boolean
)
language plpgsql security definer set search_path from current as $$
begin
    perform lock_publication(wanted);
    return query select a.* from publication_answer(wanted, false) a;
end
$$;

-- ---- 170_views.sql ---------------------------------------------------------------------------------------

-- What readers see. collection_key is the partition key itself and comes first: `where collection_key = 'us'` prunes
-- while planning, however many collections and releases there are. release_* show every complete release that is not
-- retired; published_* show the same columns of the one that the pointer names. A release id alone joins the tables:
-- the fewer tables, the faster a question is planned.

create or replace view release_areas as
select
    a.collection_key, a.release_id, r.release_key, a.area_key, a.authority, a.area_type, t.rank as type_rank,
    a.code, a.name, a.centroid, a.attributes, z.retired_at, z.successor_key
from release r
join release_area a on a.release_id = r.id
join area_type k on k.collection_id = r.collection_id and k.key = a.area_type
join release_area_type t on t.release_id = r.id and t.area_type_id = k.id
left join area_retirement z on z.collection_id = r.collection_id and z.area_key = a.area_key
where r.completed_at is not null and r.retired_at is null;

create or replace view release_boundaries as
select b.collection_key, b.release_id, r.release_key, a.area_key, b.geom, b.repaired, b.repair_reason
from release r
join boundary b on b.release_id = r.id
join release_area a on a.collection_key = b.collection_key and a.release_id = r.id and a.area_number = b.area_number
where r.completed_at is not null and r.retired_at is null;

-- The official name, and the further ones: two joins, because a subquery for each area would keep the literal
-- collection from pruning area_name.
create or replace view release_area_names as
select a.collection_key, a.release_id, r.release_key, a.area_key, a.name, 'official' as kind, null as locale
from release r
join release_area a on a.release_id = r.id
where a.name is not null and r.completed_at is not null and r.retired_at is null
union all
select a.collection_key, a.release_id, r.release_key, a.area_key, x.name, x.kind, x.locale
from release r
join release_area a on a.release_id = r.id
join area_name x on x.collection_key = a.collection_key and x.release_id = r.id and x.area_number = a.area_number
where r.completed_at is not null and r.retired_at is null;

-- The own code under its authority, and the further ones under their types.
create or replace view release_area_codes as
select a.collection_key, a.release_id, r.release_key, a.area_key, a.authority as code_type, a.code as code_value
from release r
join release_area a on a.release_id = r.id
where r.completed_at is not null and r.retired_at is null
union all
select a.collection_key, a.release_id, r.release_key, a.area_key, x.code_type, x.code_value
from release r
join release_area a on a.release_id = r.id
join area_code x on x.collection_key = a.collection_key and x.release_id = r.id and x.area_number = a.area_number
where r.completed_at is not null and r.retired_at is null;

create or replace view release_relations as
select
    x.collection_key, x.release_id, r.release_key, p.area_key as parent_area_key, a.area_key as child_area_key,
    x.relation_type, x.intersection_area_m2, x.parent_coverage, x.child_coverage
from release r
join relation x on x.release_id = r.id
join release_area p on p.collection_key = x.collection_key and p.release_id = r.id and p.area_number = x.parent_number
join release_area a on a.collection_key = x.collection_key and a.release_id = r.id and a.area_number = x.child_number
where r.completed_at is not null and r.retired_at is null;

create or replace view published_areas as
select v.* from publication p join release_areas v on v.release_id = p.release_id;

-- The most asked of all: the pointer proves that the release is complete, and its key is looked up where it is wanted.
create or replace view published_boundaries as
select
    b.collection_key, b.release_id, (select r.release_key from release r where r.id = b.release_id) as release_key,
    a.area_key, b.geom, b.repaired, b.repair_reason
from publication p
join boundary b on b.release_id = p.release_id
join release_area a
    on a.collection_key = b.collection_key and a.release_id = p.release_id and a.area_number = b.area_number;

create or replace view published_area_names as
select v.* from publication p join release_area_names v on v.release_id = p.release_id;

create or replace view published_area_codes as
select v.* from publication p join release_area_codes v on v.release_id = p.release_id;

create or replace view published_relations as
select v.* from publication p join release_relations v on v.release_id = p.release_id;

-- ---- 171_checks.sql --------------------------------------------------------------------------------------

-- What questions refuse, each by its name.

-- Refuses a release whose rows cannot be read. Errors: 23503 unknown_release; 55000 release_incomplete,
-- release_retired.
create or replace function check_readable(wanted uuid) returns void
language plpgsql stable parallel safe set search_path from current as $$
declare
    target release;
begin
    select * into target from release where id = wanted;
    if not found then
        perform refuse('23503', 'unknown_release', format('no release %s', coalesce(wanted::text, 'null')));
    elsif target.retired_at is not null then
        perform refuse('55000', 'release_retired', format('release %s is retired', target.release_key));
    elsif target.completed_at is null then
        perform refuse('55000', 'release_incomplete', format('release %s is not complete', target.release_key));
    end if;
end
$$;

-- Refuses a place that is not on earth, else gives it as a point. The meridians 180 and -180 are one line, whichever of
-- them an area was drawn to: a place on it is two points. Errors: 22023 bad_coordinate.
create or replace function place_of(longitude float8, latitude float8) returns geometry
language plpgsql stable parallel safe set search_path from current as $$
declare
    place geometry := ST_SetSRID(ST_MakePoint(longitude, latitude), 4326);
begin
    if not coalesce(longitude between -180 and 180 and latitude between -90 and 90, false) then
        perform refuse('22023', 'bad_coordinate',
            format('no such point: longitude %s, latitude %s', longitude, latitude));
    elsif abs(longitude) = 180 then
        place := ST_Collect(place, ST_SetSRID(ST_MakePoint(-longitude, latitude), 4326));
    end if;
    return place;
end
$$;

-- Refuses a limit that is not positive; null is no limit. Errors: 22023 bad_limit.
create or replace function check_limit(result_limit integer) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    if result_limit <= 0 then
        perform refuse('22023', 'bad_limit', format('a limit is at least 1, not %s', result_limit));
    end if;
end
$$;

-- Refuses a list that is null or has a null in it. Errors: 22004 null_argument.
create or replace function check_list(argument text, list text[]) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    perform refuse_null(argument, list is null or array_position(list, null) is not null);
end
$$;

-- Refuses what is not a polygon on earth. Errors: 22004 null_argument; 22023 bad_polygon.
create or replace function check_polygon(polygon geometry) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    perform refuse_null('polygon', polygon is null);
    if ST_SRID(polygon) <> 4326 then
        perform refuse('22023', 'bad_polygon', format('a polygon has SRID 4326, not %s', ST_SRID(polygon)));
    elsif GeometryType(polygon) not in ('POLYGON', 'MULTIPOLYGON') or ST_IsEmpty(polygon) then
        perform refuse('22023', 'bad_polygon', format('not a polygon with a surface: %s', GeometryType(polygon)));
    elsif not ST_IsValid(polygon) then
        perform refuse('22023', 'bad_polygon', format('not a valid polygon: %s', ST_IsValidReason(polygon)));
    elsif not polygon @ ST_MakeEnvelope(-180, -90, 180, 90, 4326) then
        perform refuse('22023', 'bad_polygon', 'a polygon lies within longitudes -180 to 180 and latitudes -90 to 90');
    end if;
end
$$;


-- Refuses a radius that is none. Errors: 22023 bad_radius.
create or replace function check_radius(radius_m float8) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    if not coalesce(radius_m > 0 and radius_m <= 20037509, false) then
        perform refuse('22023', 'bad_radius',
            format('a radius is more than 0 and at most 20037509 metres, not %s', radius_m));
    end if;
end
$$;

-- Refuses lists of different lengths. Errors: 22023 bad_lists.
create or replace function check_lengths(one text[], other text[]) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    if cardinality(one) <> cardinality(other) then
        perform refuse('22023', 'bad_lists',
            format('lists of one length are needed, not %s and %s', cardinality(one), cardinality(other)));
    end if;
end
$$;

-- Refuses a depth below one, and above what any hierarchy has: in a cycle it would cost time for nothing.
-- Errors: 22023 bad_depth.
create or replace function check_depth(depth integer) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    if not coalesce(depth between 1 and 100, false) then
        perform refuse('22023', 'bad_depth', format('a depth is 1 to 100, not %s', coalesce(depth::text, 'null')));
    end if;
end
$$;


-- Refuses a blank query, and a score that no name can have. Errors: 22004 null_argument; 22023 blank_query, bad_score.
create or replace function check_query(query text, min_score float8) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    perform refuse_null('query', query is null);
    if query !~ '\S' then
        perform refuse('22023', 'blank_query', 'a name to search for must not be blank');
    elsif min_score <= 0 or min_score > 1 then
        perform refuse('22023', 'bad_score', format('a score is above 0 and at most 1, not %s', min_score));
    end if;
end
$$;

-- ---- 172_scope.sql ---------------------------------------------------------------------------------------

-- How questions are put. Every question is asked of releases (question_scope), one dynamic query each (matches_in),
-- which names the tables of its release: planning takes the same time however many releases there are. Questions are
-- `security definer`, because readers have rights to the roots of these tables only.

-- The ranks of the area types of a release: {area_type: rank}.
create or replace view release_ranks as
select t.release_id, jsonb_object_agg(k.key, t.rank) as ranks
from release_area_type t join area_type k on k.id = t.area_type_id
group by t.release_id;

-- The releases that a question is put to: the published ones, or the one that is named. Null filters let all pass.
-- Each way of asking is a query of its own whose plan is kept: planning anew would cost as much as the question.
-- Errors: those of check_readable.
create or replace function question_scope(
    collections text[], types text[], target_release uuid, include_retired boolean
) returns setof question_scope
language plpgsql stable parallel safe rows 1 set search_path from current set plan_cache_mode = force_generic_plan as $$
declare
    retired_too boolean := coalesce(include_retired, false);
begin
    if target_release is not null then
        perform check_readable(target_release);
        return query
        select c.key, c.id, r.id, r.release_key, types, retired_too, k.ranks, r.filled
        from release r join collection c on c.id = r.collection_id left join release_ranks k on k.release_id = r.id
        where r.id = target_release and (collections is null or c.key = any (collections));
    elsif collections is null then
        return query
        select c.key, c.id, r.id, r.release_key, types, retired_too, k.ranks, r.filled
        from publication p join release r on r.id = p.release_id join collection c on c.id = p.collection_id
        left join release_ranks k on k.release_id = r.id;
    else
        return query
        select c.key, c.id, r.id, r.release_key, types, retired_too, (
            select k.ranks from release_ranks k where k.release_id = r.id
        ), r.filled
        from (select distinct unnest(collections)) a (asked) join collection c on c.key = a.asked
        join publication p on p.collection_id = c.id join release r on r.id = p.release_id;
    end if;
end
$$;

-- All codes of the area `a` in a query of matches_in, as an expression: no subquery where no area has further ones.
create or replace function codes_expression(s question_scope) returns text
language plpgsql immutable parallel safe set search_path from current as $$
begin
    return case when s.filled is null or 'area_code' = any (s.filled) then format(
        $sql$
            (select jsonb_object_agg(code_type, code_values) from (
                select code_type, jsonb_agg(distinct code_value) as code_values from (
                    select a.authority as code_type, a.code as code_value
                    union all
                    select x.code_type, x.code_value from %I x where x.area_number = a.area_number
                ) code group by code_type
            ) grouped)
        $sql$,
        release_table('area_code', s.release_id)
    ) else 'jsonb_build_object(a.authority, jsonb_build_array(a.code))' end;
end
$$;

-- The areas of one release that `hits` finds, whole, in the order of what was measured, the first `cut` of all.
-- `hits` is a query of our own files: columns seed, area_number, match_method, distance_m, intersection_area_m2,
-- coverage_of_input, coverage_of_area, score, depth, relation_type. In it, {table} is that table of this release; $3
-- and $4 are the geometries `place` and `zone`, $5 is `options`, $6 the types of the release. No caller's text reaches
-- the query. One statement, because plpgsql prepares each anew in every transaction. Compiling the query (jit) would
-- cost a hundred times what it takes.
create or replace function matches_in(
    s question_scope, hits text, place geometry, zone geometry, options jsonb, cut integer
) returns table (seed integer, match area_match)
language plpgsql stable parallel safe rows 10 set search_path from current set jit = off as $$
begin
    return query execute format(
        $sql$
            with hit (seed, area_number, match_method, distance_m, intersection_area_m2, coverage_of_input,
                coverage_of_area, score, depth, relation_type) as (%1$s)
            select h.seed, row(
                %3$L, %4$L::uuid, %5$L, a.area_key, a.authority, a.area_type, (%7$L::jsonb ->> a.area_type)::integer,
                a.code, a.name, %8$s, a.centroid, a.attributes, z.retired_at, z.successor_key, h.match_method,
                h.distance_m, h.intersection_area_m2, h.coverage_of_input, h.coverage_of_area, h.score, h.depth,
                h.relation_type
            )::area_match
            from hit h
            join release_area_%2$s a on a.area_number = h.area_number
            left join area_retirement z on z.collection_id = %6$L::uuid and z.area_key = a.area_key
            where ($1 is null or a.area_type = any ($1)) and ($2 or z.area_key is null)
            order by h.seed, h.distance_m, h.score desc, h.intersection_area_m2 desc, h.depth,
                case when h.score is null then (%7$L::jsonb ->> a.area_type)::integer end,
                case when h.score is not null then a.name end, a.area_key
            limit $7
        $sql$,
        regexp_replace(hits, '\{([a-z_]+)\}', '\1_' || replace(s.release_id::text, '-', ''), 'g'),
        replace(s.release_id::text, '-', ''), s.collection_key, s.release_id, s.release_key, s.collection_id, s.ranks,
        codes_expression(s)
    ) using s.types, s.include_retired, place, zone, options, array(select jsonb_object_keys(s.ranks)), cut;
end
$$;

-- ---- 173_polygon.sql -------------------------------------------------------------------------------------

-- The polygon of a GeoJSON geometry (RFC 7946); heights are left out. What PostGIS cannot read it calls an internal
-- error, which is no answer: it is refused by name. Errors: 22004 null_argument; 22023 bad_polygon.
create or replace function polygon_of(document text) returns geometry
language plpgsql stable parallel safe set search_path from current as $$
begin
    perform refuse_null('polygon', document is null);
    begin
        return ST_Force2D(ST_GeomFromGeoJSON(document));
    exception when internal_error or data_exception then
        perform refuse('22023', 'bad_polygon', format('not a GeoJSON geometry: %s', sqlerrm));
    end;
end
$$;

-- ---- 174_places.sql --------------------------------------------------------------------------------------

-- The areas that cover a point (degrees, WGS 84), edges included. Broad types first.
-- Asks the pieces of divided boundaries, and whole ones for the rest (GiST on both).
-- Errors: 22023 bad_coordinate; those of question_scope.
create or replace function areas_for_point(
    longitude float8, latitude float8, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false
) returns setof area_match
language plpgsql stable parallel safe security definer set search_path from current as $$
declare
    place geometry := place_of(longitude, latitude);
begin
    if abs(latitude) = 90 then -- a pole is one place, whatever its longitude
        place := ST_SetSRID(ST_MakeLine(ST_MakePoint(-180, latitude), ST_MakePoint(180, latitude)), 4326);
    end if;
    return query
    select (m.match).*
    from question_scope(collections, types, target_release, include_retired) s
    cross join lateral matches_in(s, $hits$
        select 1, g.area_number, 'containment', null::float8, null::float8, null::float8, null::float8, null::float8,
            null::integer, null
        from (
            select area_number from {boundary} b where not b.divided and ST_Intersects(b.geom, $3)
    $hits$ || case when s.filled is null or 'boundary_part' = any (s.filled) then $hits$
            union
            select area_number from {boundary_part} p where ST_Intersects(p.geom, $3)
    $hits$ else '' end || ') g', place, null, null, null) m
    order by (m.match).collection_key, (m.match).type_rank, (m.match).area_key;
end
$$;

-- The areas that share surface with a polygon (SRID 4326), the largest share first. Areas are intersected in degrees
-- and measured on the ellipsoid; those that only touch do not count. Coverages are per cent.
-- Errors: 22004 null_argument; 22023 bad_polygon; those of question_scope.
create or replace function areas_for_geometry(
    polygon geometry, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false
) returns setof area_match
language plpgsql stable parallel safe security definer set search_path from current as $$
begin
    perform check_polygon(polygon);
    return query
    select (m.match).*
    from question_scope(collections, types, target_release, include_retired) s
    cross join lateral matches_in(s, $hits$
        select 1, area_number, 'overlap', null::float8, shared, 
            least(100, 100 * shared / nullif(ST_Area(ST_Segmentize($3, 0.25)::geography), 0)),
            least(100, 100 * shared / (
                select nullif(sum(ST_Area(ST_Segmentize(w.geom, 0.25)::geography)), 0)
                from {boundary} w where w.area_number = found.area_number
            )), null::float8, null::integer, null
        from (
            select g.area_number, sum(
                ST_Area(ST_Segmentize(ST_Intersection(g.geom, $3), 0.25)::geography)
            ) as shared
            from (
                select area_number, geom from {boundary} b where not b.divided and ST_Intersects(b.geom, $3)
                union all
                select area_number, geom from {boundary_part} p where ST_Intersects(p.geom, $3)
            ) g
            group by g.area_number
        ) found
        where shared > 0
    $hits$, polygon, null, null, null) m
    order by (m.match).intersection_area_m2 desc, (m.match).collection_key, (m.match).area_key;
end
$$;

-- ---- 175_near.sql ----------------------------------------------------------------------------------------

-- Boxes in degrees (a multipolygon) that hold every point within `radius_m` of a point, on any ellipsoid as flat as WGS
-- 84. On a sphere of radius R, points at angle d = radius_m / R lie within latitude +-d and, while no pole is that
-- near, within longitude +-asin(sin d / cos latitude). R is the smallest radius of curvature of the ellipsoid (b^2 / a,
-- metres), which makes d too large rather than too small; geodetic latitudes differ from spherical ones by less than
-- the margin. Boxes that cross the antimeridian are cut there.
create or replace function search_zone(longitude float8, latitude float8, radius_m float8) returns geometry
language plpgsql immutable parallel safe set search_path from current as $$
declare
    angle float8 := degrees(radius_m / 6335439.0) * 1.01;
    south float8 := greatest(-90, latitude - angle);
    north float8 := least(90, latitude + angle);
    half float8 := 180;
begin
    if south > -90 and north < 90 then
        half := least(180, degrees(asin(least(1, sind(angle) / cosd(greatest(abs(south), abs(north)))))));
    end if;
    return ST_Multi(ST_Union(ARRAY(
        select ST_MakeEnvelope(greatest(-180, west), south, least(180, west + 2 * half), north, 4326)
        from unnest(array[longitude - half, longitude - half - 360, longitude - half + 360]) west
        where west + 2 * half >= -180 and west <= 180
    )));
end
$$;

-- The areas within `radius_m` metres of a point, nearest first: distance to the boundary on the ellipsoid, 0 inside; to
-- the centroid where there is no boundary. `result_limit` null gives all. With a limit, a small part of the radius is
-- asked first: once as many areas lie in it, none beyond is nearer.
-- Errors: 22023 bad_coordinate, bad_radius, bad_limit; those of question_scope.
create or replace function areas_near(
    longitude float8, latitude float8, radius_m float8, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false, result_limit integer default 50
) returns setof area_match
language plpgsql stable parallel safe security definer set search_path from current as $$
declare
    place geometry := place_of(longitude, latitude);
    best area_match[];
    part integer;
begin
    perform check_radius(radius_m), check_limit(result_limit);
    foreach part in array case when result_limit is null then array[1] else array[64, 16, 4, 1] end loop
        best := array(
            select m.match
            from question_scope(collections, types, target_release, include_retired) s
            cross join lateral matches_in(s, $hits$
                select 1, area_number, 'proximity', min(distance_m), null::float8, null::float8, null::float8,
                    null::float8, null::integer, null
                from (
                    select g.area_number,
                        case when ST_Intersects(g.geom, $3) then 0
                            else ST_Distance(g.geom::geography, $3::geography) end
                    from ST_Dump($4) z
                    join lateral (
                        select area_number, geom from {boundary} b where not b.divided and b.geom && z.geom
                        union all
                        select area_number, geom from {boundary_part} p where p.geom && z.geom
                    ) g on true
                    union all
                    select a.area_number, ST_Distance(a.centroid, $3::geography) from {release_area} a
                    where ST_DWithin(a.centroid, $3::geography, ($5 ->> 'radius_m')::float8)
                        and not exists (select from {boundary} b where b.area_number = a.area_number)
                ) near (area_number, distance_m)
                where distance_m <= ($5 ->> 'radius_m')::float8
                group by area_number
            $hits$, place, search_zone(longitude, latitude, radius_m / part),
                jsonb_build_object('radius_m', radius_m / part), result_limit) m
        );
        exit when cardinality(best) >= result_limit;
    end loop;
    return query select m.* from unnest(best) m
    order by m.distance_m, m.type_rank, m.collection_key, m.area_key
    limit result_limit;
end
$$;

-- ---- 176_codes.sql ---------------------------------------------------------------------------------------

-- The areas that have a code, for each of several pairs (code type, value), in their order. The own code of an area is
-- found under its authority. With a parent, only areas up to `parent_max_depth` steps below it.
-- Reads the unique index of area_key and the index of area_code.
-- Errors: 22004 null_argument; 22023 bad_lists, bad_depth; those of question_scope.
create or replace function areas_by_code_many(
    code_types text[], code_values text[], collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false,
    parent_area_key text default null, parent_max_depth integer default 1
) returns table (seed integer, match area_match)
language plpgsql stable parallel safe security definer set search_path from current as $$
begin
    perform check_list('code_types', code_types), check_list('code_values', code_values),
        check_lengths(code_types, code_values), check_depth(parent_max_depth);
    return query
    select m.seed, m.match
    from question_scope(collections, types, target_release, include_retired) s
    cross join lateral matches_in(s, $hits$
        with recursive seed as (
            select n::integer as seed, t as code_type, $5 -> 'values' ->> (n::integer - 1) as code_value
            from jsonb_array_elements_text($5 -> 'types') with ordinality x (t, n)
        ), below (area_number, depth) as (
            select p.area_number, 0 from {release_area} p where p.area_key = $5 ->> 'parent'
            union
            select r.child_number, w.depth + 1 from below w join {relation} r on r.parent_number = w.area_number
            where w.depth < ($5 ->> 'depth')::integer
        )
        select f.seed, f.area_number, 'code', null::float8, null::float8, null::float8, null::float8, null::float8,
            null::integer, null
        from (
            select x.seed, a.area_number
            from seed x cross join unnest($6) k
            join {release_area} a
                on a.area_key = area_key(x.code_type, k, x.code_value) and a.authority = x.code_type
            union
            select x.seed, c.area_number
            from seed x join {area_code} c on c.code_type = x.code_type and c.code_value = x.code_value
        ) f
        where $5 ->> 'parent' is null or f.area_number in (
            select b.area_number from below b group by b.area_number having min(b.depth) > 0 -- no cycles
        )
    $hits$, null, null, jsonb_build_object(
        'types', code_types, 'values', code_values, 'parent', parent_area_key, 'depth', parent_max_depth
    ), null) m
    order by m.seed, (m.match).collection_key, (m.match).type_rank, (m.match).area_key;
end
$$;

create or replace function areas_by_code(
    code_type text, code_value text, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false,
    parent_area_key text default null, parent_max_depth integer default 1
) returns setof area_match
language sql stable parallel safe set search_path from current as $$
    select (m.match).* from areas_by_code_many(array[code_type], array[code_value], collections, types, target_release,
        include_retired, parent_area_key, parent_max_depth) m
$$;

-- ---- 177_search.sql --------------------------------------------------------------------------------------

-- Loads pg_trgm, so that a role without more rights may set its threshold on a function below.
do $$
begin
    perform show_limit();
end
$$;

-- A pattern for LIKE that begins with a text as it is: wildcards in it are taken literally.
create or replace function prefix_pattern(beginning text) returns text
language sql immutable parallel safe set search_path from current as $$
    select regexp_replace(beginning, '([\\%_])', '\\\1', 'g') || '%'
$$;

-- The areas with a name that begins with the query, whatever the case, or is like it (trigrams); the best first. The
-- score is the similarity of the best name. Wildcards are taken literally. `min_score`: how like a name must be, above
-- 0 to 1. Null asks for likeness of 0.6 and, only while nothing is found, for less: what is spelt right is found fast,
-- what is not is found too. Of a thousand and more names that begin with the query only the shortest, which are the
-- most like it, are weighed, unless there is no limit. Reads the trigram indexes of both tables of names. Sets a
-- parameter, so not for parallel workers.
-- Errors: 22004 null_argument; 22023 blank_query, bad_score, bad_limit; those of question_scope.
create or replace function search_areas(
    query text, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false, result_limit integer default 50,
    min_score float8 default null
) returns setof area_match
language plpgsql stable parallel unsafe security definer set search_path from current
set pg_trgm.similarity_threshold = 0.6 as $$
declare
    best area_match[];
    threshold float8;
    asked jsonb := jsonb_build_object(
        'query', trim(query), 'prefix', prefix_pattern(trim(query)),
        'most', case when result_limit is not null then greatest(1000, result_limit) end
    );
begin
    perform check_query(query, min_score), check_limit(result_limit);
    foreach threshold in array case when min_score is null then array[0.6, 0.45, 0.3] else array[min_score] end loop
        perform set_config('pg_trgm.similarity_threshold', threshold::text, true);
        best := array(
            select m.match
            from question_scope(collections, types, target_release, include_retired) s
            cross join lateral matches_in(s, $hits$
                select 1, area_number, 'name', null::float8, null::float8, null::float8, null::float8,
                    max(similarity(name, $5 ->> 'query'))::float8, null::integer, null
                from (
                    (select area_number, name from {release_area} a
                    where a.name ilike $5 ->> 'prefix' and ($1 is null or a.area_type = any ($1))
                    order by length(a.name) limit ($5 ->> 'most')::bigint)
                    union all
                    (select area_number, name from {area_name} n
                    where n.name ilike $5 ->> 'prefix' and ($1 is null or exists (
                        select from {release_area} a where a.area_number = n.area_number and a.area_type = any ($1)
                    ))
                    order by length(n.name) limit ($5 ->> 'most')::bigint)
                    union all
                    select area_number, name from {release_area} a where a.name % ($5 ->> 'query')
                    union all
                    select area_number, name from {area_name} n where n.name % ($5 ->> 'query')
                ) named
                group by area_number
            $hits$, null, null, asked, result_limit) m
        );
        exit when cardinality(best) > 0;
    end loop;
    return query select m.* from unnest(best) m order by m.score desc, m.name, m.collection_key, m.area_key
        limit result_limit;
end
$$;

-- ---- 178_hierarchy.sql -----------------------------------------------------------------------------------

-- Areas below (down) or above some areas, up to `max_depth` steps, each once for each seed at its least depth: a dense
-- graph costs areas times depth, not paths. `classifications` are the relation types to walk along; null walks all.
-- Reads the indexes of relation by parent and by child.
-- Errors: 22004 null_argument; 22023 bad_depth; those of question_scope.
create or replace function walk_many(
    area_keys text[], down boolean, types text[], classifications text[], max_depth integer, collections text[],
    target_release uuid, include_retired boolean
) returns table (seed integer, match area_match)
language plpgsql stable parallel safe security definer set search_path from current as $$
begin
    perform check_list('area_keys', area_keys), check_depth(max_depth);
    return query
    select m.seed, m.match
    from question_scope(collections, types, target_release, include_retired) s
    cross join lateral matches_in(s, replace(replace($hits$
        with recursive walk (seed, area_number, depth, relation_type) as (
            select x.n::integer, a.area_number, 0, null::text
            from jsonb_array_elements_text($5 -> 'keys') with ordinality x (key, n)
            join {release_area} a on a.area_key = x.key
            union
            select w.seed, r.{to}, w.depth + 1, r.relation_type
            from walk w join {relation} r on r.{from} = w.area_number
            where w.depth < ($5 ->> 'depth')::integer
                and ($5 -> 'classes' = 'null' or $5 -> 'classes' ? r.relation_type)
        )
        select distinct on (w.seed, w.area_number) w.seed, w.area_number, 'relation', null::float8, null::float8,
            null::float8, null::float8, null::float8, w.depth, w.relation_type
        from walk w
        where w.depth > 0
            and not exists (select from walk o where o.seed = w.seed and o.area_number = w.area_number and o.depth = 0)
        order by w.seed, w.area_number, w.depth, w.relation_type
    $hits$, '{from}', case when down then 'parent_number' else 'child_number' end),
        '{to}', case when down then 'child_number' else 'parent_number' end),
    null, null, jsonb_build_object('keys', area_keys, 'depth', max_depth, 'classes', classifications), null) m
    order by m.seed, (m.match).depth, (m.match).collection_key, (m.match).type_rank, (m.match).area_key;
end
$$;

create or replace function children_of_many(
    area_keys text[], types text[] default null, classifications text[] default null, max_depth integer default 1,
    collections text[] default null, target_release uuid default null, include_retired boolean default false
) returns table (seed integer, match area_match)
language sql stable parallel safe set search_path from current as $$
    select * from walk_many(area_keys, true, types, classifications, max_depth, collections, target_release,
        include_retired)
$$;

create or replace function children_of(
    area_key text, types text[] default null, classifications text[] default null, max_depth integer default 1,
    collections text[] default null, target_release uuid default null, include_retired boolean default false
) returns setof area_match
language sql stable parallel safe set search_path from current as $$
    select (m.match).* from walk_many(array[area_key], true, types, classifications, max_depth, collections,
        target_release, include_retired) m
$$;

create or replace function ancestors_of_many(
    area_keys text[], types text[] default null, classifications text[] default null, max_depth integer default 1,
    collections text[] default null, target_release uuid default null, include_retired boolean default false
) returns table (seed integer, match area_match)
language sql stable parallel safe set search_path from current as $$
    select * from walk_many(area_keys, false, types, classifications, max_depth, collections, target_release,
        include_retired)
$$;

create or replace function ancestors_of(
    area_key text, types text[] default null, classifications text[] default null, max_depth integer default 1,
    collections text[] default null, target_release uuid default null, include_retired boolean default false
) returns setof area_match
language sql stable parallel safe set search_path from current as $$
    select (m.match).* from walk_many(array[area_key], false, types, classifications, max_depth, collections,
        target_release, include_retired) m
$$;

-- Areas one step away in either direction. The measures are those of the relation, in per cent of the seed
-- (coverage_of_input) and of the area found (coverage_of_area); depth is 1 below and -1 above.
-- Errors: 22004 null_argument; those of question_scope.
create or replace function related_areas_many(
    area_keys text[], classifications text[] default null, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false
) returns table (seed integer, match area_match)
language plpgsql stable parallel safe security definer set search_path from current as $$
begin
    perform check_list('area_keys', area_keys);
    return query
    select m.seed, m.match
    from question_scope(collections, types, target_release, include_retired) s
    cross join lateral matches_in(s, $hits$
        select n.seed, n.area_number, 'relation', null::float8, n.shared, 100 * n.of_seed, 100 * n.of_area,
            null::float8, n.step, n.relation_type
        from (
            select x.n::integer as seed, e.*
            from jsonb_array_elements_text($5 -> 'keys') with ordinality x (key, n)
            join {release_area} a on a.area_key = x.key
            join lateral (
                select r.child_number, r.relation_type, r.intersection_area_m2, r.parent_coverage, r.child_coverage, 1
                from {relation} r where r.parent_number = a.area_number
                union all
                select r.parent_number, r.relation_type, r.intersection_area_m2, r.child_coverage, r.parent_coverage, -1
                from {relation} r where r.child_number = a.area_number
            ) e (area_number, relation_type, shared, of_seed, of_area, step) on true
            where $5 -> 'classes' = 'null' or $5 -> 'classes' ? e.relation_type
        ) n
    $hits$, null, null, jsonb_build_object('keys', area_keys, 'classes', classifications), null) m
    order by m.seed, (m.match).depth, (m.match).collection_key, (m.match).type_rank, (m.match).area_key;
end
$$;

create or replace function related_areas(
    area_key text, classifications text[] default null, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false
) returns setof area_match
language sql stable parallel safe set search_path from current as $$
    select (m.match).* from related_areas_many(array[area_key], classifications, collections, types, target_release,
        include_retired) m
$$;

-- ---- 179_resolve.sql -------------------------------------------------------------------------------------

-- Which strategies of resolve have what they need in its input; refuses what it cannot understand.
-- Errors: 22023 bad_resolve_input, bad_strategy.
create or replace function usable_strategies(input jsonb, strategies text[]) returns text[]
language plpgsql stable parallel safe set search_path from current as $$
declare
    wanted text[] := coalesce(strategies, array['containment', 'code', 'name', 'proximity']);
    strange text;
    usable text[];
begin
    if coalesce(jsonb_typeof(input) <> 'object', true) then
        perform refuse('22023', 'bad_resolve_input', 'an input is an object');
    end if;
    strange := (
        select string_agg(k, ', ' order by k) from jsonb_object_keys(input) k where not k = any (array[
            'lon', 'lat', 'radius_m', 'code_type', 'code_value', 'name', 'parent_area_key'
        ])
    );
    if strange is not null then
        perform refuse('22023', 'bad_resolve_input', format('an input does not have %s', strange));
    elsif (input ? 'lon') <> (input ? 'lat') or (input ? 'code_type') <> (input ? 'code_value') then
        perform refuse('22023', 'bad_resolve_input', 'lon goes with lat, and code_type with code_value');
    elsif exists (
        select from jsonb_each(input) i where jsonb_typeof(i.value)
            <> case when i.key in ('lon', 'lat', 'radius_m') then 'number' else 'string' end
    ) then
        perform refuse('22023', 'bad_resolve_input', 'lon, lat and radius_m are numbers, the others texts');
    elsif exists (
        select from unnest(wanted) w where coalesce(w not in ('containment', 'code', 'name', 'proximity'), true)
    ) then
        perform refuse('22023', 'bad_strategy', 'strategies are containment, code, name and proximity');
    end if;
    usable := array(
        select w from unnest(wanted) with ordinality x (w, n)
        where input ? case w when 'code' then 'code_type' when 'name' then 'name' else 'lon' end order by n
    );
    if usable = '{}' then
        perform refuse('22023', 'bad_resolve_input', 'give lon and lat, or code_type and code_value, or name');
    end if;
    return usable;
end
$$;

-- The areas that some input means: strategies are tried in order and the first one that finds anything answers.
-- input: lon, lat, radius_m (25000), code_type, code_value, name, parent_area_key (codes and names one step below it).
-- Errors: 22023 bad_resolve_input, bad_strategy; those of the questions asked.
create or replace function resolve(
    input jsonb, collections text[] default null, types text[] default null, strategies text[] default null,
    target_release uuid default null, include_retired boolean default false
) returns setof area_match
language plpgsql stable parallel unsafe set search_path from current as $$
declare
    usable text[] := usable_strategies(input, strategies); -- first: what follows takes the input at its word
    strategy text;
    parent text := input ->> 'parent_area_key';
    lon float8 := input ->> 'lon';
    lat float8 := input ->> 'lat';
begin
    foreach strategy in array usable loop
        case strategy
            when 'containment' then
                return query select * from areas_for_point(lon, lat, collections, types, target_release,
                    include_retired);
            when 'code' then
                return query select * from areas_by_code(input ->> 'code_type', input ->> 'code_value', collections,
                    types, target_release, include_retired, parent, 1);
            when 'name' then
                return query select f.* from search_areas(input ->> 'name', collections, types, target_release,
                    include_retired, case when parent is null then 25 else 10000 end,
                    case when parent is not null then 0.3 end) f
                where parent is null or (f.release_id, f.area_key) in (
                    select b.release_id, b.area_key from children_of(parent, types, null, 1, collections,
                        target_release, include_retired) b
                ) limit 25;
            else
                return query select * from areas_near(lon, lat, coalesce((input ->> 'radius_m')::float8, 25000),
                    collections, types, target_release, include_retired);
        end case;
        if found then
            return;
        end if;
    end loop;
end
$$;

-- ---- 180_upgrade.sql -------------------------------------------------------------------------------------

-- Releases that 0.1 merged have two tables; questions, indexes and verification name all of them. Makes what is
-- missing, empty: standalone for a candidate, attached for a complete release.
-- Locks: those of attach_release_table, where something is missing.
do $$
declare
    old record;
begin
    for old in
        select r.id, r.completed_at, parent, c
        from release r join collection c on c.id = r.collection_id
        cross join unnest(release_parents()) with ordinality n (parent, place)
        where r.retired_at is null and to_regclass(release_table('release_area', r.id)) is not null
            and to_regclass(release_table(parent, r.id)) is null
        order by r.id, place
    loop
        perform create_release_table(old.parent, old.id, (old.c).key);
        if old.completed_at is not null then
            perform attach_release_table(old.parent, old.id, old.c);
        end if;
    end loop;
end
$$;

-- ---- 185_sweep.sql ---------------------------------------------------------------------------------------

-- Tables that nobody needs any more, and what they hang on. Names are derived from ids, so a table that only looks
-- alike is not among them.
--   staging: of a run that has ended. candidate: of a release without a live run, not attached (a crash left it, or it
--   was detached). retired: still attached. detaching: a concurrent detachment was cancelled half-way.
create or replace view sweepable_table as
with home as (select c.oid, c.relname, c.relispartition from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r')
select h.relname::text as relation, 'staging' as kind, null::text as parent, null::uuid as release_id
from home h join import_run i on staging_table(i.id) = h.relname
where i.completed_at is not null
union all
select h.relname::text, 'candidate', null, r.id
from release r cross join unnest(release_parents()) p join home h on h.relname = release_table(p, r.id)
where not h.relispartition and not exists (select from import_run_lease l where l.release_id = r.id)
    and (r.completed_at is null or r.retired_at is not null)
union all
select h.relname::text, case when n.inhdetachpending then 'detaching' else 'retired' end,
    n.inhparent::regclass::text, r.id
from release r cross join unnest(release_parents()) p join home h on h.relname = release_table(p, r.id)
join pg_inherits n on n.inhrelid = h.oid
where r.retired_at is not null;

-- Drops a table that hangs nowhere, if it is still one that nobody needs; false if it is not. For the owner.
-- Locks: release (so that no retry begins meanwhile), the table.
create or replace function drop_swept(wanted text) returns boolean
language plpgsql set search_path from current as $$
begin
    perform lock_release(c.key, r.release_key)
    from sweepable_table s join release r on r.id = s.release_id join collection c on c.id = r.collection_id
    where s.relation = wanted;
    if not exists (select from sweepable_table where relation = wanted and kind in ('staging', 'candidate')) then
        return false;
    end if;
    execute format('drop table %I', wanted);
    return true;
end
$$;

-- ---- 190_access.sql --------------------------------------------------------------------------------------

-- Rights. The owner of the schema migrates and sweeps. A writer calls every door of the catalog (`security definer`,
-- see 030_locks.sql), reads every table, and writes to the staging tables of runs; no other table. A reader reads what
-- is complete: views, release tables, and the functions that only read. Nobody else may do anything.

-- What a reader may select.
create or replace function readable_relations() returns setof regclass
language sql stable set search_path from current as $$
    select c.oid::regclass from pg_class c
    where c.relnamespace = current_schema()::regnamespace and (
        c.relname = any (release_parents() || array[
            'collection', 'authority', 'area_type', 'release_authority', 'release_area_type', 'release', 'publication',
            'area_retirement', 'publication_history'
        ])
        or c.relkind = 'v' and (c.relname ~ '^(published|release)_')
    )
$$;

-- The relations that rights are given to: all but the tables of single runs and releases, which are read through their
-- roots and would collide with an import that is attaching them.
create or replace function grantable_relations() returns setof regclass
language sql stable set search_path from current as $$
    select c.oid::regclass from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v')
        and not c.relispartition and c.relname !~ '_[0-9a-f]{32}$'
$$;

-- Gives one role its rights and no others; repeating it adds what is new. Locks: catalog rows of the objects.
create or replace function renew_access(given catalog_role) returns void
language plpgsql set search_path from current as $$
declare
    item text;
    may boolean;
begin
    execute format('grant usage on schema %I to %I', current_schema(), given.role);
    for item, may in
        select g, given.access = 'writer' or g in (select readable_relations()) from grantable_relations() g
    loop
        if may and not has_table_privilege(given.role, item, 'select') then
            execute format('grant select on %s to %I', item, given.role);
        elsif not may then
            execute format('revoke all on %s from %I', item, given.role);
        end if;
    end loop;
    for item, may in
        select p.oid::regprocedure, p.provolatile <> 'v' or p.prosecdef and given.access = 'writer'
        from pg_proc p where p.pronamespace = current_schema()::regnamespace
    loop
        execute format(
            case when may then 'grant execute on function %s to %I' else 'revoke all on function %s from %I' end,
            item, given.role
        );
    end loop;
end
$$;

-- All that every migration ends with: roles that are no more are forgotten, all others get what this version needs, and
-- nobody else may do anything.
create or replace function renew_all_access() returns void
language plpgsql set search_path from current as $$
begin
    execute format('revoke all on all functions in schema %I from public', current_schema());
    delete from catalog_role where role not in (select rolname from pg_roles);
    perform renew_access(c) from catalog_role c;
end
$$;

-- Makes a role of the server a writer or a reader of this catalog. For the owner.
-- Locks: the row. Errors: 22023 bad_access; 42704 unknown_role.
create or replace function grant_access(wanted name, kind text) returns void
language plpgsql set search_path from current as $$
declare
    given catalog_role;
begin
    if not coalesce(kind in ('writer', 'reader'), false) then
        perform refuse('22023', 'bad_access', format('access is writer or reader, not %s', coalesce(kind, 'null')));
    elsif not exists (select from pg_roles r where r.rolname = wanted) then
        perform refuse('42704', 'unknown_role', format('the server has no role %s', coalesce(wanted::text, 'null')));
    end if;
    insert into catalog_role (role, access, granted_at) values (wanted, kind, catalog_now())
    on conflict (role) do update set access = excluded.access
    returning * into given;
    perform renew_access(given);
end
$$;
