-- Rows of releases, what could not be imported, and which release readers see.

create table import_reject (
    run_id uuid not null references import_run on delete cascade,
    artifact text not null,
    position bigint not null,
    reason text not null check (reason ~ '^[a-z][a-z0-9_]*$'),
    byte_offset bigint check (byte_offset >= 0),
    detail text not null check (length(detail) <= 200),
    primary key (run_id, artifact, position, reason)
);
comment on table import_reject is 'Every row that was read and not imported, so that nothing is lost silently.';
comment on column import_reject.position is 'Number of the row in the artifact, from 1.';

create table publication (
    collection_id uuid primary key references collection,
    release_id uuid not null references release,
    previous_release_id uuid references release check (previous_release_id <> release_id),
    published_at timestamptz not null
);
comment on table publication is 'The pointer: which release of a collection readers see, and where roll back goes.';
create index publication_release on publication (release_id);

create table publication_event (
    sequence bigint generated always as identity primary key,
    collection_id uuid not null references collection,
    release_id uuid not null references release,
    previous_release_id uuid references release,
    kind text not null check (kind in ('published', 'rolled_back')),
    occurred_at timestamptz not null
);
create index publication_event_release on publication_event (release_id);
comment on table publication_event is 'Append-only log of every move of the pointer.';

-- Release tables: partitioned by collection, then by release. A run builds its two leaves standalone, loads and
-- indexes them, and attaches them when it completes (attach_release). Indexes and keys stand on the leaves alone;
-- there are no foreign keys: attaching would lock the tables they point to.

create table release_area (
    collection_key text not null,
    release_id uuid not null,
    area_number integer not null,
    area_key text collate "C" not null,
    authority text not null,
    area_type text not null,
    code text not null,
    name text,
    centroid geography(Point, 4326),
    attributes jsonb not null check (jsonb_typeof(attributes) = 'object'),
    artifact text not null,
    position bigint not null
) partition by list (collection_key);
comment on table release_area is 'An area in a release. Self-contained: the load numbers the areas densely from 1.';
comment on column release_area.area_key is 'authority:type:code, the identity in its collection on any database.';
comment on column release_area.area_number is 'What boundaries of the same release refer to; means nothing outside.';
comment on column release_area.centroid is 'A point on the surface of the boundary; null without a boundary.';
comment on column release_area.artifact is 'With position: the row of the file that this area was read from.';

create table boundary (
    collection_key text not null,
    release_id uuid not null,
    area_number integer not null,
    geom geometry(MultiPolygon, 4326) compression lz4 not null,
    repaired boolean not null,
    repair_reason text,
    constraint repaired_has_reason check (repaired = (repair_reason is not null))
) partition by list (collection_key);
comment on column boundary.repair_reason is 'What was wrong with the geometry as read (ST_IsValidReason).';
