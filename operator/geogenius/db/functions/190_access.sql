-- Rights. The owner of the schema migrates and sweeps. A writer calls every door of the catalog (`security definer`,
-- see 030_locks.sql), reads every table, and writes to the staging tables of runs; no other table. A reader reads what
-- is complete: views, release tables, and the functions that only read. Nobody else may do anything.

-- What a reader may select.
create or replace function readable_relations() returns setof regclass
language sql stable set search_path from current as $$
    select c.oid::regclass from pg_class c
    where c.relnamespace = current_schema()::regnamespace and (
        c.relname = any (release_parents() || array[
            'collection', 'authority', 'area_type', 'release_authority', 'release_area_type', 'release', 'publication',
            'area_retirement', 'publication_history'
        ])
        or c.relkind = 'v' and (c.relname ~ '^(published|release)_')
    )
$$;

-- The relations that rights are given to: all but the tables of single runs and releases, which are read through their
-- roots and would collide with an import that is attaching them.
create or replace function grantable_relations() returns setof regclass
language sql stable set search_path from current as $$
    select c.oid::regclass from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v')
        and not c.relispartition and c.relname !~ '_[0-9a-f]{32}$'
$$;

-- Gives one role its rights and no others; repeating it adds what is new. Locks: catalog rows of the objects.
create or replace function renew_access(given catalog_role) returns void
language plpgsql set search_path from current as $$
declare
    item text;
    may boolean;
begin
    execute format('grant usage on schema %I to %I', current_schema(), given.role);
    for item, may in
        select g, given.access = 'writer' or g in (select readable_relations()) from grantable_relations() g
    loop
        if may and not has_table_privilege(given.role, item, 'select') then
            execute format('grant select on %s to %I', item, given.role);
        elsif not may then
            execute format('revoke all on %s from %I', item, given.role);
        end if;
    end loop;
    for item, may in
        select p.oid::regprocedure, p.provolatile <> 'v' or p.prosecdef and given.access = 'writer'
        from pg_proc p where p.pronamespace = current_schema()::regnamespace
    loop
        execute format(
            case when may then 'grant execute on function %s to %I' else 'revoke all on function %s from %I' end,
            item, given.role
        );
    end loop;
end
$$;

-- All that every migration ends with: roles that are no more are forgotten, all others get what this version needs, and
-- nobody else may do anything.
create or replace function renew_all_access() returns void
language plpgsql set search_path from current as $$
begin
    execute format('revoke all on all functions in schema %I from public', current_schema());
    delete from catalog_role where role not in (select rolname from pg_roles);
    perform renew_access(c) from catalog_role c;
end
$$;

-- Makes a role of the server a writer or a reader of this catalog. For the owner.
-- Locks: the row. Errors: 22023 bad_access; 42704 unknown_role.
create or replace function grant_access(wanted name, kind text) returns void
language plpgsql set search_path from current as $$
declare
    given catalog_role;
begin
    if not coalesce(kind in ('writer', 'reader'), false) then
        perform refuse('22023', 'bad_access', format('access is writer or reader, not %s', coalesce(kind, 'null')));
    elsif not exists (select from pg_roles r where r.rolname = wanted) then
        perform refuse('42704', 'unknown_role', format('the server has no role %s', coalesce(wanted::text, 'null')));
    end if;
    insert into catalog_role (role, access, granted_at) values (wanted, kind, catalog_now())
    on conflict (role) do update set access = excluded.access
    returning * into given;
    perform renew_access(given);
end
$$;
