-- What questions refuse, each by its name.

-- Refuses a release whose rows cannot be read. Errors: 23503 unknown_release; 55000 release_incomplete,
-- release_retired.
create or replace function check_readable(wanted uuid) returns void
language plpgsql stable parallel safe set search_path from current as $$
declare
    target release;
begin
    select * into target from release where id = wanted;
    if not found then
        perform refuse('23503', 'unknown_release', format('no release %s', coalesce(wanted::text, 'null')));
    elsif target.retired_at is not null then
        perform refuse('55000', 'release_retired', format('release %s is retired', target.release_key));
    elsif target.completed_at is null then
        perform refuse('55000', 'release_incomplete', format('release %s is not complete', target.release_key));
    end if;
end
$$;

-- Refuses a place that is not on earth, else gives it as a point. The meridians 180 and -180 are one line, whichever of
-- them an area was drawn to: a place on it is two points. Errors: 22023 bad_coordinate.
create or replace function place_of(longitude float8, latitude float8) returns geometry
language plpgsql stable parallel safe set search_path from current as $$
declare
    place geometry := ST_SetSRID(ST_MakePoint(longitude, latitude), 4326);
begin
    if not coalesce(longitude between -180 and 180 and latitude between -90 and 90, false) then
        perform refuse('22023', 'bad_coordinate',
            format('no such point: longitude %s, latitude %s', longitude, latitude));
    elsif abs(longitude) = 180 then
        place := ST_Collect(place, ST_SetSRID(ST_MakePoint(-longitude, latitude), 4326));
    end if;
    return place;
end
$$;

-- Refuses a limit that is not positive; null is no limit. Errors: 22023 bad_limit.
create or replace function check_limit(result_limit integer) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    if result_limit <= 0 then
        perform refuse('22023', 'bad_limit', format('a limit is at least 1, not %s', result_limit));
    end if;
end
$$;

-- Refuses a list that is null or has a null in it. Errors: 22004 null_argument.
create or replace function check_list(argument text, list text[]) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    perform refuse_null(argument, list is null or array_position(list, null) is not null);
end
$$;

-- Refuses what is not a polygon on earth. Errors: 22004 null_argument; 22023 bad_polygon.
create or replace function check_polygon(polygon geometry) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    perform refuse_null('polygon', polygon is null);
    if ST_SRID(polygon) <> 4326 then
        perform refuse('22023', 'bad_polygon', format('a polygon has SRID 4326, not %s', ST_SRID(polygon)));
    elsif GeometryType(polygon) not in ('POLYGON', 'MULTIPOLYGON') or ST_IsEmpty(polygon) then
        perform refuse('22023', 'bad_polygon', format('not a polygon with a surface: %s', GeometryType(polygon)));
    elsif not ST_IsValid(polygon) then
        perform refuse('22023', 'bad_polygon', format('not a valid polygon: %s', ST_IsValidReason(polygon)));
    elsif not polygon @ ST_MakeEnvelope(-180, -90, 180, 90, 4326) then
        perform refuse('22023', 'bad_polygon', 'a polygon lies within longitudes -180 to 180 and latitudes -90 to 90');
    end if;
end
$$;


-- Refuses a radius that is none. Errors: 22023 bad_radius.
create or replace function check_radius(radius_m float8) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    if not coalesce(radius_m > 0 and radius_m <= 20037509, false) then
        perform refuse('22023', 'bad_radius',
            format('a radius is more than 0 and at most 20037509 metres, not %s', radius_m));
    end if;
end
$$;

-- Refuses lists of different lengths. Errors: 22023 bad_lists.
create or replace function check_lengths(one text[], other text[]) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    if cardinality(one) <> cardinality(other) then
        perform refuse('22023', 'bad_lists',
            format('lists of one length are needed, not %s and %s', cardinality(one), cardinality(other)));
    end if;
end
$$;

-- Refuses a depth below one, and above what any hierarchy has: in a cycle it would cost time for nothing.
-- Errors: 22023 bad_depth.
create or replace function check_depth(depth integer) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    if not coalesce(depth between 1 and 100, false) then
        perform refuse('22023', 'bad_depth', format('a depth is 1 to 100, not %s', coalesce(depth::text, 'null')));
    end if;
end
$$;


-- Refuses a blank query, and a score that no name can have. Errors: 22004 null_argument; 22023 blank_query, bad_score.
create or replace function check_query(query text, min_score float8) returns void
language plpgsql stable parallel safe set search_path from current as $$
begin
    perform refuse_null('query', query is null);
    if query !~ '\S' then
        perform refuse('22023', 'blank_query', 'a name to search for must not be blank');
    elsif min_score <= 0 or min_score > 1 then
        perform refuse('22023', 'bad_score', format('a score is above 0 and at most 1, not %s', min_score));
    end if;
end
$$;
