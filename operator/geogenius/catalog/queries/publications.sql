-- name: publish_release (one)
-- Points readers at a complete release. Locks: publication, publication row, events.
select * from publish_release(%(release)s)

-- name: rollback_publication (one)
-- Points readers at the release they saw before. Locks: publication, publication row, events.
select * from rollback_publication(%(collection)s, %(leaving)s)

-- name: current_publication (at most one)
-- The pointer of a collection as it is now; waits for nobody (primary keys).
select * from publication_answer(%(collection)s, false)

-- name: settled_publication (at most one)
-- The pointer of a collection, once no move of it is in flight. Locks: publication.
select * from settled_publication(%(collection)s)

-- name: retire_releases (many)
-- Retires old releases. Locks: publication, release rows, publication row.
select release_id from retire_releases(%(collection)s, %(keep)s) as release_id

-- name: retire_area (one)
-- Says that an area is no more. Locks: the row.
select retire_area(%(collection)s, %(area)s, %(successor)s)

-- name: restore_area (one)
-- Takes back that an area is no more. Locks: the row.
select restore_area(%(collection)s, %(area)s) as restored

-- name: release_at (one)
-- The release that readers saw at a moment (publication_event_of_collection).
select release_at(%(collection)s, %(moment)s) as release_id

-- name: verify_release (one)
-- Looks at every row of a complete release. Locks: those of reading.
select verify_release(%(release)s) as report

-- name: list_releases (many)
-- The releases of a collection, newest first (unique key of release).
select * from release_status where collection_key = %(collection)s order by created_at desc, release_key desc

-- name: get_release (at most one)
-- A release by its id (primary key).
select * from release_status where release_id = %(release)s

-- name: list_history (many)
-- The moves of the pointer of a collection, latest first (publication_event_of_collection).
select sequence, kind, release_id, release_key, previous_release_id, occurred_at
from publication_history
where collection_key = %(collection)s
order by sequence desc
limit %(limit)s
