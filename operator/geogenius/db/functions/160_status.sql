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
