-- name: areas_for_point (many)
-- Published areas that cover a point, broad types first (GiST on the leaves of boundary).
select * from areas_for_point(%(longitude)s, %(latitude)s, %(collections)s)

-- name: published_release (at most one)
-- The release that readers of a collection see (keys).
select p.release_id from publication p join collection c on c.id = p.collection_id where c.key = %(collection)s
