-- name: areas_for_point (many)
-- The areas that cover a point (GiST on boundary and boundary_part).
select m.*, ST_X(m.centroid::geometry) as longitude, ST_Y(m.centroid::geometry) as latitude
from areas_for_point(
    %(longitude)s, %(latitude)s, %(collections)s, %(types)s, %(release)s, %(include_retired)s
) m

-- name: areas_for_geometry (many)
-- The areas that share surface with a polygon (GiST on boundary and boundary_part).
select m.*, ST_X(m.centroid::geometry) as longitude, ST_Y(m.centroid::geometry) as latitude
from areas_for_geometry(
    polygon_of(%(polygon)s), %(collections)s, %(types)s, %(release)s, %(include_retired)s
) m

-- name: areas_near (many)
-- The areas within a distance of a point (GiST on boundary, boundary_part and centroids).
select m.*, ST_X(m.centroid::geometry) as longitude, ST_Y(m.centroid::geometry) as latitude
from areas_near(
    %(longitude)s, %(latitude)s, %(radius)s, %(collections)s, %(types)s, %(release)s, %(include_retired)s, %(limit)s::int4
) m
