-- More tables of a release: pieces of large boundaries, further names and codes, relations. Partitioned, attached and
-- dropped like the two of 0003; without foreign keys for the same reason.

alter table boundary add column divided boolean not null default false;
comment on column boundary.divided is 'Has many vertices: boundary_part holds pieces of it, which answer for it.';

create table boundary_part (
    collection_key text not null,
    release_id uuid not null,
    area_number integer not null,
    geom geometry(Geometry, 4326) compression lz4 not null
) partition by list (collection_key);
comment on table boundary_part is
    'Pieces of divided boundaries, 256 vertices at most (ST_Subdivide), for fast questions.';

create table area_name (
    collection_key text not null,
    release_id uuid not null,
    area_number integer not null,
    name text not null check (name <> ''),
    kind text not null check (kind in ('official', 'alias', 'mailing', 'abbreviation')),
    locale text check (locale <> '')
) partition by list (collection_key);
comment on table area_name is 'Names of an area beside its official one, which stands in release_area.name.';

create table area_code (
    collection_key text not null,
    release_id uuid not null,
    area_number integer not null,
    code_type text not null check (code_type ~ '^[a-z_][a-z0-9_]*$'),
    code_value text collate "C" not null check (code_value <> '')
) partition by list (collection_key);
comment on table area_code is 'Codes of an area beside its own, which stands in release_area.code under its authority.';

create table relation (
    collection_key text not null,
    release_id uuid not null,
    parent_number integer not null,
    child_number integer not null,
    relation_type text not null check (relation_type in ('contains', 'mostly_contains', 'overlaps')),
    intersection_area_m2 double precision check (intersection_area_m2 > 0),
    parent_coverage double precision check (parent_coverage between 0 and 1),
    child_coverage double precision check (child_coverage between 0 and 1),
    constraint two_areas check (parent_number <> child_number),
    constraint measured_whole check (num_nulls(intersection_area_m2, parent_coverage, child_coverage) in (0, 3))
) partition by list (collection_key);
comment on table relation is 'An edge from a broad area to a narrow one. Without measures it was asserted by a source.';

alter table release add column filled text[];
comment on column release.filled is
    'Which of its further tables hold rows, so that questions leave out the others. Null: completed by 0.1, not known.';

-- Imports that are under way at this moment have tables of their own, which get the new columns too.
do $$
declare
    own regclass;
begin
    for own in
        select c.oid from pg_class c
        where c.relnamespace = current_schema()::regnamespace and c.relname ~ '^boundary_[0-9a-f]{32}$'
            and not c.relispartition
    loop
        execute format('alter table %s add column divided boolean not null default false', own);
    end loop;
    for own in
        select c.oid from pg_class c
        where c.relnamespace = current_schema()::regnamespace and c.relname ~ '^staging_[0-9a-f]{32}$'
    loop
        execute format(
            'alter table %s add column point geometry(Point, 4326), add column names jsonb, add column codes jsonb,'
            'add column parents jsonb', own
        );
    end loop;
end
$$;
