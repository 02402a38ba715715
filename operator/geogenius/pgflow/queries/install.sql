-- name: lock_installation (one)
-- One installation at a time in a database, whichever catalog it is for.
select pg_advisory_xact_lock(hashtextextended('geogenius pgflow install', 0))

-- name: forget_search_path (none)
-- The scripts of others were written for the path that a session begins with.
set local search_path to default

-- name: look_around (one)
-- What is there that the scripts would make, and whether this server could make pgmq as an extension.
-- Tables and functions are looked up in the catalogs, which needs no right on their schemas.
select
    current_user as me,
    current_database() as database,
    has_database_privilege(current_database(), 'create') as may_create,
    to_regnamespace('pgmq') is not null as pgmq,
    exists (select from pg_available_extensions where name = 'pgmq') as pgmq_extension,
    (select extversion from pg_extension where extname = 'pgmq') as pgmq_extension_version,
    exists (
        select from pg_proc
        where pronamespace = to_regnamespace('realtime') and proname = 'send'
            and oidvectortypes(proargtypes) = 'jsonb, text, text, boolean'
    ) as realtime,
    to_regnamespace('pgflow') is not null as pgflow,
    exists (select from pg_class where relnamespace = to_regnamespace('pgflow') and relname = 'flows') as flows,
    exists (select from pg_class where relnamespace = to_regnamespace('pgmq') and relname = 'meta') as queues,
    exists (select from pg_class where relnamespace = to_regnamespace('pgmq') and relname = 'q_' || %(slug)s) as queue

-- name: create_pgmq (none)
-- Needs the rights that the extension asks for.
create extension pgmq

-- name: create_realtime (none)
-- pgflow announces every step by Supabase's `realtime.send`; elsewhere nobody listens. Never over an existing one.
do $$
begin
    create schema if not exists realtime;
    create function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
    language sql as 'select null::void';
end
$$

-- name: create_flow (many)
-- Repeating it changes nothing, not even options that differ.
select from pgflow.create_flow(%(slug)s, 1, 1, %(timeout)s)

-- name: add_step (many)
-- The same; its options are those of the flow.
select from pgflow.add_step(%(slug)s, %(step)s)

-- name: set_flow_timeout (at most one)
-- Locks: the flow. No row where it is right.
update pgflow.flows set opt_timeout = %(timeout)s where flow_slug = %(slug)s and opt_timeout <> %(timeout)s
returning opt_timeout

-- name: set_step_timeout (at most one)
-- The step has none of its own: that of the flow counts.
update pgflow.steps set opt_timeout = null
where flow_slug = %(slug)s and step_slug = %(step)s and opt_timeout is not null
returning step_slug

-- name: record_script (none)
-- The same script again changes nothing.
insert into {schema}.queue_component (component, script, origin, version, sha256, applied_at)
values (%(component)s, %(script)s, %(origin)s, %(version)s, %(sha256)s, now())
on conflict (component, script) do nothing

-- name: list_components (many)
-- What was made by us, with the version of each part.
select component, min(version) as version, min(origin) as origin from {schema}.queue_component
group by component order by component

-- name: list_writers (many)
-- Roles that queue and execute runs, with the rights that each lacks.
select c.role,
    array(
        select format('%%s on %%s', r.privilege, r.relation)
        from (
            select unnest(array['pgflow.flows', 'pgflow.steps', 'pgflow.deps']) as relation, 'select' as privilege
            union all
            select t, p
            from unnest(array['pgflow.runs', 'pgflow.step_states', 'pgflow.step_tasks', 'pgflow.workers',
                'pgmq.q_' || %(slug)s, 'pgmq.a_' || %(slug)s]) t,
                unnest(array['select', 'insert', 'update', 'delete']) p
        ) r
        where to_regclass(r.relation) is not null and not has_table_privilege(c.role, r.relation, r.privilege)
        union all
        select 'usage on schema ' || n
        from unnest(array['pgmq', 'pgflow', 'realtime']) n
        where to_regnamespace(n) is not null and not has_schema_privilege(c.role, n, 'usage')
    ) as lacks
from {schema}.catalog_role c
where c.access = 'writer' and exists (select from pg_roles where rolname = c.role)
order by c.role

-- name: grant_pgmq (none)
-- On what this program made.
grant usage on schema pgmq to {role}

-- name: grant_realtime (none)
-- The same.
grant usage on schema realtime to {role}

-- name: grant_pgflow (none)
-- The same.
grant usage on schema pgflow to {role}

-- name: grant_definitions (none)
-- What a flow is, is read.
grant select on pgflow.flows, pgflow.steps, pgflow.deps to {role}

-- name: grant_runs (none)
-- The core's functions write with the rights of the caller.
grant select, insert, update, delete on pgflow.runs, pgflow.step_states, pgflow.step_tasks, pgflow.workers to {role}

-- name: grant_queue (none)
-- The queue of our flow is ours whoever made pgmq.
grant select, insert, update, delete on pgmq.{queue}, pgmq.{archive} to {role}
