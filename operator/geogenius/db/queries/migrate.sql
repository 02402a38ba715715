-- name: has_schema (one)
-- Whether the home of the catalog is there.
select exists (select from pg_namespace where nspname = %(schema)s) as present

-- name: create_schema (none)
-- The home of the catalog. Needs the right to create in the database, even with `if not exists`.
create schema {schema}

-- name: create_schema_migration (none)
-- The record of what was applied. `functions` is not a file: its checksum is that of all function files.
create table if not exists {schema}.schema_migration (
    name text primary key,
    checksum text not null,
    applied_at timestamptz not null default now()
)

-- name: has_schema_migration (one)
-- Whether a migration was ever applied here.
select to_regclass(%(table)s) is not null as present

-- name: applied_migrations (many)
-- What was applied, by name.
select name, checksum from schema_migration order by name

-- name: record_migration (none)
-- Keeps the name and checksum of a file that was just applied, in its transaction.
insert into schema_migration (name, checksum) values (%(name)s, %(checksum)s)
on conflict (name) do update set checksum = excluded.checksum, applied_at = now()

-- name: lock_migration (one)
-- One migration of a schema at a time. Locks: migration (advisory, gone with the transaction).
select pg_advisory_xact_lock(hashtextextended('geogenius migration ' || %(schema)s, 0))

-- name: extension_version (at most one)
-- An extension as it is installed, and whether our search path reaches it.
select e.extversion, n.nspname, n.nspname = any (current_schemas(true)) as reachable
from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = %(extension)s

-- name: create_extension (none)
-- Needs a superuser, or for a trusted extension the right to create in the database.
create extension if not exists {extension} with schema public

-- name: limit_lock_wait (one)
-- Shorter than deadlock_timeout: who meets an import gives way before the server has to choose between the two.
select set_config('lock_timeout', %(lock_timeout)s, true)

-- name: grant_access (one)
-- Gives a role of the server its rights, now and after every migration. Locks: the row, catalog rows of the objects.
select grant_access(%(role)s, %(access)s)

-- name: renew_all_access (one)
-- Rights of all roles of the catalog. Locks: catalog rows of the objects.
select renew_all_access()
