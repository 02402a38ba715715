-- name: start_flow (one)
-- The flow run has the id of the import run, so that a run is queued once for ever: runs_pkey refuses a second time.
select status from pgflow.start_flow(%(slug)s, %(input)s, %(run)s)

-- name: announce (one)
-- A channel of our own: that of pgmq falls silent when its unlogged table is emptied by a crash of the server.
select pg_notify(%(slug)s, '')

-- name: is_installed (one)
-- Whether there is anything to look into.
select to_regclass('pgflow.runs') is not null as installed

-- name: look_at_run (at most one)
-- What the queue has of a run, whichever state it is in.
select r.status, t.status as task_status, t.error_message
from pgflow.runs r
left join pgflow.step_tasks t on t.run_id = r.run_id and t.step_slug = %(step)s and t.task_index = 0
where r.run_id = %(run)s and r.flow_slug = %(slug)s
