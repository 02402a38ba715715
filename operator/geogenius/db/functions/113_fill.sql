-- Fills the areas of a release, numbered in the order of their keys. Locks: the table.
create or replace function fill_areas(staging text, release uuid, collection_key text) returns void
language plpgsql set search_path from current as $$
declare
    areas text := release_table('release_area', release);
begin
    execute format(
        $sql$
            insert into %I (collection_key, release_id, area_number, area_key, authority, area_type, code, name,
                centroid, attributes, artifact, position)
            select $1, $2, row_number() over (order by k.area_key), k.area_key, k.authority, k.area_type, k.code,
                case when u.id is null then k.name else u.name end,
                case when u.id is null then coalesce(ST_PointOnSurface(k.final), k.point)
                    else coalesce(ST_PointOnSurface(u.geom), u.point) end::geography,
                coalesce(u.attributes, k.attributes), k.artifact, k.position
            from (%s) k left join pg_temp.united u on u.id = k.id
            where k.first
        $sql$,
        areas, contribution_query(staging)
    ) using collection_key, release;
    execute format('analyze %I (area_key)', areas);
end
$$;

-- Fills the boundaries of a release and the pieces of those with many vertices. Locks: the tables.
create or replace function fill_boundaries(staging text, release uuid, collection_key text) returns void
language plpgsql set search_path from current as $$
declare
    boundaries text := release_table('boundary', release);
begin
    execute format(
        $sql$
            insert into %I (collection_key, release_id, area_number, geom, repaired, repair_reason, divided)
            select $1, $2, a.area_number, k.final, k.repaired, k.reason, ST_NPoints(k.final) > 256
            from (%s) k join %I a on a.area_key = k.area_key
            where k.final is not null and not exists (
                select from pg_temp.united u where u.area_key = k.area_key and u.boundary_id <> k.id
            )
        $sql$,
        boundaries, contribution_query(staging), release_table('release_area', release)
    ) using collection_key, release;
    execute format(
        $sql$
            insert into %I (collection_key, release_id, area_number, geom)
            select b.collection_key, b.release_id, b.area_number, piece
            from %I b cross join lateral ST_Subdivide(b.geom, 256) piece
            where b.divided and ST_Dimension(piece) = 2
        $sql$,
        release_table('boundary_part', release), boundaries
    );
end
$$;

-- Fills the names and codes beside the official name and the own code; each once, whichever sources give it.
-- Locks: the tables.
create or replace function fill_names_and_codes(staging text, release uuid, collection_key text) returns void
language plpgsql set search_path from current as $$
begin
    execute format(
        $sql$
            insert into %I (collection_key, release_id, area_number, name, kind, locale)
            select distinct $1, $2, a.area_number, n.name, n.kind, n.locale
            from (%s) k
            join %I a on a.area_key = k.area_key
            cross join lateral (
                select x ->> 0, x ->> 1, x ->> 2 from jsonb_array_elements(k.names) x
                union all
                select k.name, 'official', null where not k.first and k.name is not null
            ) n (name, kind, locale)
            where (k.names is not null or not k.first)
                and (n.name, n.kind, n.locale) is distinct from (a.name, 'official', null)
        $sql$,
        release_table('area_name', release), contribution_query(staging), release_table('release_area', release)
    ) using collection_key, release;
    execute format(
        $sql$
            insert into %I (collection_key, release_id, area_number, code_type, code_value)
            select distinct $1, $2, a.area_number, c ->> 0, c ->> 1
            from (%s) k
            join %I a on a.area_key = k.area_key
            cross join lateral jsonb_array_elements(k.codes) c
            where k.codes is not null and (c ->> 0, c ->> 1) is distinct from (a.authority, a.code)
        $sql$,
        release_table('area_code', release), contribution_query(staging), release_table('release_area', release)
    ) using collection_key, release;
end
$$;
