-- name: register_worker (none)
-- Says that the worker lives; others see by this that somebody listens, and tasks name it. Locks: its row.
insert into pgflow.workers (worker_id, queue_name, function_name) values (%(worker)s, %(slug)s, %(name)s)
on conflict (worker_id) do update set last_heartbeat_at = now()

-- name: retire_worker (none)
-- Tasks that name the worker forget it.
delete from pgflow.workers where worker_id = %(worker)s

-- name: read_messages (many)
-- Messages that became visible, invisible again for one lease. Nothing may be joined here: the function sees what was
-- committed after this statement began, which tables beside it do not show. Locks: the messages; those that others
-- have locked are passed over.
select msg_id, read_ct from pgmq.read(%(slug)s, %(lease)s::integer, %(count)s::integer)

-- name: look_up_messages (many)
-- The tasks and flow runs that messages stand for.
select m.msg_id, t.run_id, t.status as task_status, r.status as run_status, r.input
from unnest(%(messages)s::bigint[]) m (msg_id)
left join pgflow.step_tasks t on t.flow_slug = %(slug)s and t.step_slug = %(step)s and t.message_id = m.msg_id
left join pgflow.runs r on r.run_id = t.run_id
order by m.msg_id

-- name: archive_message (one)
-- A message without a task that waits to be done.
select pgmq.archive(%(slug)s, %(message)s::bigint)

-- name: requeue_tasks (none)
-- A started task whose message is visible has lost its worker: the core would never start it again. Locks: the tasks.
update pgflow.step_tasks set status = 'queued', started_at = null, last_worker_id = null
where flow_slug = %(slug)s and step_slug = %(step)s and message_id = any (%(messages)s) and status = 'started'

-- name: count_start_arguments (one)
-- Cores up to 0.16 take three arguments, later ones want the name of the queue as well.
select case when to_regprocedure('pgflow.start_tasks(text, bigint[], uuid)') is not null then 3 else 4 end as arguments

-- name: start_tasks_3 (one)
-- Locks: the tasks.
select count(*) from pgflow.start_tasks(%(slug)s, %(messages)s::bigint[], %(worker)s)

-- name: start_tasks_4 (one)
-- Locks: the tasks.
select count(*) from pgflow.start_tasks(%(slug)s, %(messages)s::bigint[], %(worker)s, %(slug)s)

-- name: list_started (many)
-- What start_tasks has started; its own answer differs from core to core.
select message_id, run_id, attempts_count as attempt from pgflow.step_tasks
where flow_slug = %(slug)s and step_slug = %(step)s and message_id = any (%(messages)s)
    and status = 'started' and last_worker_id = %(worker)s
order by message_id

-- name: lease_messages (many)
-- The core sets no visibility (0.8) or one that outlasts the deadline (0.15): here it is the lease. How often each was
-- read tells whether somebody else has it now. Locks: the messages.
select v.msg_id, v.read_ct
from unnest(%(messages)s::bigint[]) m, lateral pgmq.set_vt(%(slug)s, m, %(lease)s::integer) v

-- name: own_task (at most one)
-- Whether a task is still ours. The core lets any worker complete any started task, so every end asks this first.
-- Locks: the task.
select from pgflow.step_tasks
where run_id = %(run)s and step_slug = %(step)s and task_index = 0 and status = 'started'
    and last_worker_id = %(worker)s and attempts_count = %(attempt)s
for update

-- name: complete_task (many)
-- Ends task, step and flow run, and archives the message.
select from pgflow.complete_task(%(run)s, %(step)s, 0, %(said)s)

-- name: fail_task (many)
-- The same; our flow allows one attempt, so that a failed task is at its end.
select from pgflow.fail_task(%(run)s, %(step)s, 0, %(said)s)

-- name: put_back_task (none)
-- Handed out again later, as if it had not been handed out now where it is not to count.
update pgflow.step_tasks
set status = 'queued', started_at = null, last_worker_id = null, attempts_count = attempts_count - %(uncounted)s
where run_id = %(run)s and step_slug = %(step)s and task_index = 0
