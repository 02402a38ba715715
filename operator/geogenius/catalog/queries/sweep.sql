-- name: list_sweepable (many)
-- Tables that nobody needs any more, those that hang nowhere first.
select relation, kind, parent from sweepable_table order by parent nulls first, relation

-- name: detach_partition (none)
-- Lets readers pass; waits alone for transactions that have read the collection. Not inside a transaction.
alter table {parent} detach partition {relation} concurrently

-- name: finalize_partition (none)
-- Ends a detachment that was cancelled.
alter table {parent} detach partition {relation} finalize

-- name: drop_swept (one)
-- Drops a table if nobody needs it still. Locks: release, the table.
select drop_swept(%(relation)s) as dropped
