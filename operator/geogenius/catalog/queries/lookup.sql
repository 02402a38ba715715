-- name: areas_by_code_many (many)
-- The areas that have codes, by the number of the code (unique index of area_key, index of area_code).
select m.seed, (m.match).*,
    ST_X((m.match).centroid::geometry) as longitude, ST_Y((m.match).centroid::geometry) as latitude
from areas_by_code_many(
    %(code_types)s, %(code_values)s, %(collections)s, %(types)s, %(release)s, %(include_retired)s,
    %(parent)s, %(max_depth)s::int4
) m

-- name: search_areas (many)
-- The areas with a name like a text (trigram indexes of both tables of names).
select m.*, ST_X(m.centroid::geometry) as longitude, ST_Y(m.centroid::geometry) as latitude
from search_areas(
    %(text)s, %(collections)s, %(types)s, %(release)s, %(include_retired)s, %(limit)s::int4, %(min_score)s
) m

-- name: resolve (many)
-- The areas that some clues mean (indexes of the questions asked).
select m.*, ST_X(m.centroid::geometry) as longitude, ST_Y(m.centroid::geometry) as latitude
from resolve(
    %(input)s, %(collections)s, %(types)s, %(strategies)s, %(release)s, %(include_retired)s
) m
