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
