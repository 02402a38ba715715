-- name: compute_cutoff (one)
-- Once for all batches.
select now() - make_interval(secs => %(seconds)s) as cutoff

-- name: lock_ended_runs (many)
-- Locks: some of the flow runs that ended before the cutoff; those that others have locked are passed over.
select run_id from pgflow.runs
where flow_slug = %(slug)s and status in ('completed', 'failed') and coalesce(completed_at, failed_at) < %(cutoff)s
limit %(batch)s
for update skip locked

-- name: delete_tasks_of (none)
-- Index: the primary key.
delete from pgflow.step_tasks where run_id = any (%(runs)s)

-- name: delete_states_of (none)
-- The same.
delete from pgflow.step_states where run_id = any (%(runs)s)

-- name: delete_runs_of (none)
-- The same.
delete from pgflow.runs where run_id = any (%(runs)s)

-- name: delete_archived (none)
-- Index: that on archived_at. Passes over what others have locked.
delete from pgmq.{archive} where msg_id in (
    select msg_id from pgmq.{archive} where archived_at < %(cutoff)s limit %(batch)s for update skip locked
)
