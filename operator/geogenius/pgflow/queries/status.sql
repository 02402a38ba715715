-- name: count_runs (many)
-- Flow runs of ours by state.
select status, count(*) as runs from pgflow.runs where flow_slug = %(slug)s group by status order by status

-- name: count_messages (one)
-- A message is worked on while its task is started and its lease lasts; all others wait, now or for later.
select
    count(*) filter (where not held) as waiting,
    count(*) filter (where held) as worked_on
from (
    select m.vt > clock_timestamp() and exists (
        select from pgflow.step_tasks t
        where t.flow_slug = %(slug)s and t.step_slug = %(step)s and t.message_id = m.msg_id and t.status = 'started'
    ) as held
    from pgmq.{queue} m
) q
