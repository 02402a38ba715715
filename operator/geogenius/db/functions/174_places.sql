-- The areas that cover a point (degrees, WGS 84), edges included. Broad types first.
-- Asks the pieces of divided boundaries, and whole ones for the rest (GiST on both).
-- Errors: 22023 bad_coordinate; those of question_scope.
create or replace function areas_for_point(
    longitude float8, latitude float8, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false
) returns setof area_match
language plpgsql stable parallel safe security definer set search_path from current as $$
declare
    place geometry := place_of(longitude, latitude);
begin
    if abs(latitude) = 90 then -- a pole is one place, whatever its longitude
        place := ST_SetSRID(ST_MakeLine(ST_MakePoint(-180, latitude), ST_MakePoint(180, latitude)), 4326);
    end if;
    return query
    select (m.match).*
    from question_scope(collections, types, target_release, include_retired) s
    cross join lateral matches_in(s, $hits$
        select 1, g.area_number, 'containment', null::float8, null::float8, null::float8, null::float8, null::float8,
            null::integer, null
        from (
            select area_number from {boundary} b where not b.divided and ST_Intersects(b.geom, $3)
    $hits$ || case when s.filled is null or 'boundary_part' = any (s.filled) then $hits$
            union
            select area_number from {boundary_part} p where ST_Intersects(p.geom, $3)
    $hits$ else '' end || ') g', place, null, null, null) m
    order by (m.match).collection_key, (m.match).type_rank, (m.match).area_key;
end
$$;

-- The areas that share surface with a polygon (SRID 4326), the largest share first. Areas are intersected in degrees
-- and measured on the ellipsoid; those that only touch do not count. Coverages are per cent.
-- Errors: 22004 null_argument; 22023 bad_polygon; those of question_scope.
create or replace function areas_for_geometry(
    polygon geometry, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false
) returns setof area_match
language plpgsql stable parallel safe security definer set search_path from current as $$
begin
    perform check_polygon(polygon);
    return query
    select (m.match).*
    from question_scope(collections, types, target_release, include_retired) s
    cross join lateral matches_in(s, $hits$
        select 1, area_number, 'overlap', null::float8, shared, 
            least(100, 100 * shared / nullif(ST_Area(ST_Segmentize($3, 0.25)::geography), 0)),
            least(100, 100 * shared / (
                select nullif(sum(ST_Area(ST_Segmentize(w.geom, 0.25)::geography)), 0)
                from {boundary} w where w.area_number = found.area_number
            )), null::float8, null::integer, null
        from (
            select g.area_number, sum(
                ST_Area(ST_Segmentize(ST_Intersection(g.geom, $3), 0.25)::geography)
            ) as shared
            from (
                select area_number, geom from {boundary} b where not b.divided and ST_Intersects(b.geom, $3)
                union all
                select area_number, geom from {boundary_part} p where ST_Intersects(p.geom, $3)
            ) g
            group by g.area_number
        ) found
        where shared > 0
    $hits$, polygon, null, null, null) m
    order by (m.match).intersection_area_m2 desc, (m.match).collection_key, (m.match).area_key;
end
$$;
