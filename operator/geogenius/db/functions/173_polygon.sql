-- The polygon of a GeoJSON geometry (RFC 7946); heights are left out. What PostGIS cannot read it calls an internal
-- error, which is no answer: it is refused by name. Errors: 22004 null_argument; 22023 bad_polygon.
create or replace function polygon_of(document text) returns geometry
language plpgsql stable parallel safe set search_path from current as $$
begin
    perform refuse_null('polygon', document is null);
    begin
        return ST_Force2D(ST_GeomFromGeoJSON(document));
    exception when internal_error or data_exception then
        perform refuse('22023', 'bad_polygon', format('not a GeoJSON geometry: %s', sqlerrm));
    end;
end
$$;
