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
