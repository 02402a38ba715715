-- Roles that were given rights to this catalog. `grant_access` writes it; every migration grants anew what it lists.
create table catalog_role (
    role name primary key,
    access text not null check (access in ('writer', 'reader')),
    granted_at timestamptz not null
);
comment on table catalog_role is
    'The owner migrates and sweeps; a writer (operator, importer) calls functions; a reader reads what is complete.';
