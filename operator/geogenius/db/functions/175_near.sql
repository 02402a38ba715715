-- Boxes in degrees (a multipolygon) that hold every point within `radius_m` of a point, on any ellipsoid as flat as WGS
-- 84. On a sphere of radius R, points at angle d = radius_m / R lie within latitude +-d and, while no pole is that
-- near, within longitude +-asin(sin d / cos latitude). R is the smallest radius of curvature of the ellipsoid (b^2 / a,
-- metres), which makes d too large rather than too small; geodetic latitudes differ from spherical ones by less than
-- the margin. Boxes that cross the antimeridian are cut there.
create or replace function search_zone(longitude float8, latitude float8, radius_m float8) returns geometry
language plpgsql immutable parallel safe set search_path from current as $$
declare
    angle float8 := degrees(radius_m / 6335439.0) * 1.01;
    south float8 := greatest(-90, latitude - angle);
    north float8 := least(90, latitude + angle);
    half float8 := 180;
begin
    if south > -90 and north < 90 then
        half := least(180, degrees(asin(least(1, sind(angle) / cosd(greatest(abs(south), abs(north)))))));
    end if;
    return ST_Multi(ST_Union(ARRAY(
        select ST_MakeEnvelope(greatest(-180, west), south, least(180, west + 2 * half), north, 4326)
        from unnest(array[longitude - half, longitude - half - 360, longitude - half + 360]) west
        where west + 2 * half >= -180 and west <= 180
    )));
end
$$;

-- The areas within `radius_m` metres of a point, nearest first: distance to the boundary on the ellipsoid, 0 inside; to
-- the centroid where there is no boundary. `result_limit` null gives all. With a limit, a small part of the radius is
-- asked first: once as many areas lie in it, none beyond is nearer.
-- Errors: 22023 bad_coordinate, bad_radius, bad_limit; those of question_scope.
create or replace function areas_near(
    longitude float8, latitude float8, radius_m float8, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false, result_limit integer default 50
) returns setof area_match
language plpgsql stable parallel safe security definer set search_path from current as $$
declare
    place geometry := place_of(longitude, latitude);
    best area_match[];
    part integer;
begin
    perform check_radius(radius_m), check_limit(result_limit);
    foreach part in array case when result_limit is null then array[1] else array[64, 16, 4, 1] end loop
        best := array(
            select m.match
            from question_scope(collections, types, target_release, include_retired) s
            cross join lateral matches_in(s, $hits$
                select 1, area_number, 'proximity', min(distance_m), null::float8, null::float8, null::float8,
                    null::float8, null::integer, null
                from (
                    select g.area_number,
                        case when ST_Intersects(g.geom, $3) then 0
                            else ST_Distance(g.geom::geography, $3::geography) end
                    from ST_Dump($4) z
                    join lateral (
                        select area_number, geom from {boundary} b where not b.divided and b.geom && z.geom
                        union all
                        select area_number, geom from {boundary_part} p where p.geom && z.geom
                    ) g on true
                    union all
                    select a.area_number, ST_Distance(a.centroid, $3::geography) from {release_area} a
                    where ST_DWithin(a.centroid, $3::geography, ($5 ->> 'radius_m')::float8)
                        and not exists (select from {boundary} b where b.area_number = a.area_number)
                ) near (area_number, distance_m)
                where distance_m <= ($5 ->> 'radius_m')::float8
                group by area_number
            $hits$, place, search_zone(longitude, latitude, radius_m / part),
                jsonb_build_object('radius_m', radius_m / part), result_limit) m
        );
        exit when cardinality(best) >= result_limit;
    end loop;
    return query select m.* from unnest(best) m
    order by m.distance_m, m.type_rank, m.collection_key, m.area_key
    limit result_limit;
end
$$;
