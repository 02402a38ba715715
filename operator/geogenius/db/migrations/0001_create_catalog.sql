-- What the catalog knows for ever: collections, who defines codes, where files come from, and releases.
-- Times are written by the functions (catalog_now), so that tests can set them; hence no column defaults.

create table collection (
    id uuid primary key default gen_random_uuid(),
    key text not null unique check (key ~ '^[a-z_][a-z0-9_]*$'),
    created_at timestamptz not null
);
comment on table collection is 'Unit of publication and roll back. Identity is the key; policy lives per release.';

create table authority (
    id uuid primary key default gen_random_uuid(),
    collection_id uuid not null references collection,
    key text not null check (key ~ '^[a-z_][a-z0-9_]*$'),
    unique (collection_id, key)
);
comment on table authority is 'Who defines codes. The key is part of area keys; the name is given per release.';

create table area_type (
    id uuid primary key default gen_random_uuid(),
    collection_id uuid not null references collection,
    key text not null check (key ~ '^[a-z_][a-z0-9_]*$'),
    unique (collection_id, key)
);
comment on table area_type is 'A kind of area. Rank and the demand for a geometry are given per release.';

create table source (
    id uuid primary key default gen_random_uuid(),
    collection_id uuid not null references collection,
    source_key text not null check (source_key <> ''),
    provider text not null check (provider <> ''),
    license text not null check (license <> ''),
    created_at timestamptz not null,
    unique (collection_id, source_key)
);
comment on table source is 'Where files come from. Provider and license never change under one key.';

create table source_release (
    id uuid primary key default gen_random_uuid(),
    source_id uuid not null references source,
    release_key text not null check (release_key <> ''),
    source_date date,
    attribution text,
    created_at timestamptz not null,
    unique (source_id, release_key)
);
comment on table source_release is 'One vintage of a source. Its definition never changes.';

create table artifact (
    id uuid primary key default gen_random_uuid(),
    source_release_id uuid not null references source_release,
    logical_name text not null check (logical_name <> ''),
    format text not null check (format <> ''),
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    bytes bigint not null check (bytes > 0),
    url text check (url <> ''),
    created_at timestamptz not null,
    unique (source_release_id, logical_name)
);
comment on table artifact is
    'One reviewed file. May be corrected while every run that selected it has failed; afterwards it never changes.';
comment on column artifact.url is 'Null: the operator of the catalog supplies the file.';

create table release (
    id uuid primary key default gen_random_uuid(),
    collection_id uuid not null references collection,
    release_key text not null check (release_key <> ''),
    manifest jsonb not null check (jsonb_typeof(manifest) = 'object'),
    created_at timestamptz not null,
    completed_at timestamptz,
    retired_at timestamptz check (retired_at is null or completed_at is not null),
    unique (collection_id, release_key)
);
comment on table release is 'A version of a collection. Frozen for ever once completed_at is set.';

create table release_authority (
    release_id uuid not null references release on delete cascade,
    authority_id uuid not null references authority,
    name text not null check (name <> ''),
    primary key (release_id, authority_id)
);

create table release_area_type (
    release_id uuid not null references release on delete cascade,
    area_type_id uuid not null references area_type,
    rank integer not null check (rank > 0),
    requires_geometry boolean not null,
    primary key (release_id, area_type_id),
    unique (release_id, rank)
);
comment on column release_area_type.rank is 'A low rank contains a high one.';
