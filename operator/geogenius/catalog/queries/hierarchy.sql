-- name: children_of_many (many)
-- The areas below some areas, by the number of the area (index of relation by parent).
select m.seed, (m.match).*,
    ST_X((m.match).centroid::geometry) as longitude, ST_Y((m.match).centroid::geometry) as latitude
from children_of_many(
    %(area_keys)s, %(types)s, %(classifications)s, %(max_depth)s::int4, %(collections)s, %(release)s, %(include_retired)s
) m

-- name: ancestors_of_many (many)
-- The areas above some areas, by the number of the area (index of relation by child).
select m.seed, (m.match).*,
    ST_X((m.match).centroid::geometry) as longitude, ST_Y((m.match).centroid::geometry) as latitude
from ancestors_of_many(
    %(area_keys)s, %(types)s, %(classifications)s, %(max_depth)s::int4, %(collections)s, %(release)s, %(include_retired)s
) m

-- name: related_areas_many (many)
-- The areas beside some areas, by the number of the area (both indexes of relation).
select m.seed, (m.match).*,
    ST_X((m.match).centroid::geometry) as longitude, ST_Y((m.match).centroid::geometry) as latitude
from related_areas_many(
    %(area_keys)s, %(classifications)s, %(collections)s, %(types)s, %(release)s, %(include_retired)s
) m
