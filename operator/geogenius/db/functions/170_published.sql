-- What readers see. collection_key is the partition key itself and comes first: `where collection_key = 'us'`
-- prunes while planning, however many collections and releases there are.
create or replace view published_areas as
select
    a.collection_key, a.release_id, r.release_key, a.area_key, a.authority, a.area_type, t.rank as type_rank,
    a.code, a.name, a.centroid, a.attributes
from publication p
join release r on r.id = p.release_id
join collection c on c.id = p.collection_id
join release_area a on a.collection_key = c.key and a.release_id = p.release_id
join area_type k on k.collection_id = p.collection_id and k.key = a.area_type
join release_area_type t on t.release_id = p.release_id and t.area_type_id = k.id;

create or replace view published_boundaries as
select
    a.collection_key, a.release_id, r.release_key, a.area_key, b.geom, b.repaired, b.repair_reason
from publication p
join release r on r.id = p.release_id
join collection c on c.id = p.collection_id
join release_area a on a.collection_key = c.key and a.release_id = p.release_id
join boundary b on b.collection_key = c.key and b.release_id = p.release_id and b.area_number = a.area_number;

-- The areas of one published release that cover a point, edges included; of a place that is two points, either. The dynamic query carries collection and
-- release as constants, so that planning opens one leaf of each table. Uses the GiST index on boundary.geom.
create or replace function areas_of_release_for_point(collection_key text, release uuid, point geometry)
returns table (area_key text, authority text, area_type text, code text, name text, attributes jsonb)
language plpgsql stable parallel safe set search_path from current as $$
begin
    return query execute format($sql$
        select a.area_key, a.authority, a.area_type, a.code, a.name, a.attributes
        from boundary b join release_area a on a.area_number = b.area_number
        where b.collection_key = %1$L and b.release_id = %2$L and a.collection_key = %1$L and a.release_id = %2$L
            and ST_Intersects(b.geom, $1)
    $sql$, collection_key, release) using point;
end
$$;

-- Published areas that cover a point (degrees, WGS 84); `collections` null means all. Broad types first.
-- The meridians 180 and -180 are one line, whichever of them an area was drawn to.
-- Errors: 22023 bad_coordinate.
create or replace function areas_for_point(longitude float8, latitude float8, collections text[] default null)
returns table (
    collection_key text, release_id uuid, release_key text, area_key text, authority text, area_type text,
    type_rank integer, code text, name text, attributes jsonb
)
language plpgsql stable parallel safe set search_path from current as $$
declare
    place geometry := ST_SetSRID(ST_MakePoint(longitude, latitude), 4326);
begin
    if not coalesce(longitude between -180 and 180 and latitude between -90 and 90, false) then
        perform refuse('22023', 'bad_coordinate', format('no such point: longitude %s, latitude %s', longitude, latitude));
    elsif abs(longitude) = 180 then
        place := ST_Collect(place, ST_SetSRID(ST_MakePoint(-longitude, latitude), 4326));
    end if;
    return query
    select c.key, r.id, r.release_key, a.area_key, a.authority, a.area_type, t.rank, a.code, a.name, a.attributes
    from publication p
    join release r on r.id = p.release_id
    join collection c on c.id = p.collection_id
    cross join lateral areas_of_release_for_point(c.key, r.id, place) a
    join area_type k on k.collection_id = c.id and k.key = a.area_type
    join release_area_type t on t.release_id = r.id and t.area_type_id = k.id
    where collections is null or c.key = any (collections)
    order by c.key, t.rank, a.area_key;
end
$$;
