-- name: list_functions (many)
-- What must be there, by name and arguments; whichever version brought it; of add_step
-- the name alone, since its arguments have grown with every version, always with defaults.
select wanted, coalesce(to_regprocedure(wanted), to_regprocedure(instead)) is not null as present
from (values
    ('pgflow.create_flow(text, integer, integer, integer)', null),
    ('pgflow.start_flow(text, jsonb, uuid)', null),
    ('pgflow.start_tasks(text, bigint[], uuid)', 'pgflow.start_tasks(text, bigint[], uuid, text)'),
    ('pgflow.complete_task(uuid, text, integer, jsonb)', null),
    ('pgflow.fail_task(uuid, text, integer, text)', null),
    ('pgmq.read(text, integer, integer, jsonb)', 'pgmq.read(text, integer, integer)'),
    ('pgmq.set_vt(text, bigint, integer)', null),
    ('pgmq.archive(text, bigint)', null),
    ('realtime.send(jsonb, text, text, boolean)', null)
) f (wanted, instead)
union all
select 'pgflow.add_step', exists (
    select from pg_proc where proname = 'add_step' and pronamespace = to_regnamespace('pgflow')
)
union all
select 'column ' || c, exists (
    select from pg_attribute
    where attrelid = to_regclass(split_part(c, '.', 1) || '.' || split_part(c, '.', 2))
        and attname = split_part(c, '.', 3) and not attisdropped
)
from unnest(array[
    'pgflow.runs.status', 'pgflow.step_tasks.message_id', 'pgflow.step_tasks.started_at',
    'pgflow.step_tasks.last_worker_id', 'pgflow.step_tasks.attempts_count', 'pgflow.workers.last_heartbeat_at'
]) c

-- name: look_for_schemas (one)
-- Which of the two are there at all.
select to_regnamespace('pgmq') is not null as pgmq, to_regnamespace('pgflow') is not null as pgflow

-- name: get_flow (at most one)
-- The flow as it is stored; steps that are not ours make it another flow than the one we mean.
select
    f.opt_timeout as flow_timeout,
    (select s.opt_timeout from pgflow.steps s where s.flow_slug = f.flow_slug and s.step_slug = %(step)s)
        as step_timeout,
    array(select s.step_slug from pgflow.steps s where s.flow_slug = f.flow_slug order by s.step_slug) as steps
from pgflow.flows f where f.flow_slug = %(slug)s

-- name: count_workers (one)
-- Workers that gave a sign of life in the last seconds.
select count(*) as healthy from pgflow.workers
where queue_name = %(slug)s and last_heartbeat_at > now() - make_interval(secs => %(fresh_seconds)s)
