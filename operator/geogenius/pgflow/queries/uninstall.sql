-- name: lock_flow (at most one)
-- Waits for transactions that queue a run; later ones wait for us, and find no flow. Locks: the flow.
select flow_slug from pgflow.flows where flow_slug = %(slug)s for update

-- name: count_started_runs (one)
-- Queued, or with a worker.
select count(*) as started from pgflow.runs where flow_slug = %(slug)s and status = 'started'

-- name: lock_queue (none)
-- Waits for workers that have a message under a lock. Locks: the whole queue.
lock table pgmq.{queue} in access exclusive mode

-- name: delete_step_tasks (none)
-- Of every flow run.
delete from pgflow.step_tasks where flow_slug = %(slug)s

-- name: delete_step_states (none)
-- The same.
delete from pgflow.step_states where flow_slug = %(slug)s

-- name: delete_runs (none)
-- The same.
delete from pgflow.runs where flow_slug = %(slug)s

-- name: delete_deps (none)
-- Ours has none; a foreign step may.
delete from pgflow.deps where flow_slug = %(slug)s

-- name: delete_steps (none)
-- All of them, so that the flow can go.
delete from pgflow.steps where flow_slug = %(slug)s

-- name: delete_flow (none)
-- Nothing names it any more.
delete from pgflow.flows where flow_slug = %(slug)s

-- name: delete_workers (none)
-- Those of our queue alone.
delete from pgflow.workers where queue_name = %(slug)s

-- name: drop_queue (one)
-- The queue, its archive and what pgmq knows of them.
select pgmq.drop_queue(%(slug)s)

-- name: list_flows (many)
-- Whose they are does not matter.
select flow_slug as name from pgflow.flows order by flow_slug

-- name: list_queues (many)
-- The same.
select queue_name as name from pgmq.meta order by queue_name

-- name: drop_pgflow (none)
-- With everything in it.
drop schema pgflow cascade

-- name: drop_realtime_send (none)
-- What we made there.
drop function realtime.send(jsonb, text, text, boolean)

-- name: drop_empty_realtime (none)
-- Left where others have something in it, or it is theirs.
do $$
begin
    drop schema realtime;
exception when dependent_objects_still_exist or insufficient_privilege then
    null;
end
$$

-- name: drop_pgmq_extension (none)
-- Its schema was made with it, and stays when it goes.
do $$
begin
    drop extension pgmq;
    drop schema if exists pgmq;
exception when dependent_objects_still_exist then
    raise exception 'others have something in the schema pgmq: remove it first' using errcode = '55006';
end
$$

-- name: drop_pgmq (none)
-- With everything in it.
drop schema pgmq cascade

-- name: forget_component (none)
-- It is no longer there.
delete from {schema}.queue_component where component = %(component)s
