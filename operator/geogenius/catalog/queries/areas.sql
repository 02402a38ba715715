-- name: create_staging (one)
-- Makes the run's empty staging table. Locks: run row and lease row in share, the table.
select create_staging(%(run)s, %(executor)s)

-- name: assert_staging (one)
-- The fence of a COPY, which goes around the functions. Locks: run row and lease row in share.
select assert_import_write(%(run)s, %(executor)s, array['staging']::run_state[]), staging_table(%(run)s) as staging

-- name: copy_staging (none)
-- One page of areas. geometry_recv takes WKB; the column's type gives it SRID 4326.
copy {staging} (
    artifact, position, authority, area_type, code, name, attributes, geom, point, names, codes, parents
) from stdin (format binary)

-- name: record_rejects (one)
-- Keeps rows that cannot be imported. Locks: the rows.
select record_rejects(%(run)s, %(executor)s, %(artifact)s, %(positions)s, %(reasons)s, %(byte_offsets)s, %(details)s)

-- name: merge_staging (one)
-- Builds the tables of the release. Locks: run row and lease row in share, the tables.
select areas, boundaries, repaired, rejected, merged, boundaries_unused
from merge_staging(%(run)s, %(executor)s, %(staged)s)

-- name: relate_release (one)
-- Builds the relations of the release. Locks: run row and lease row in share, the tables.
select asserted, measured from relate_release(%(run)s, %(executor)s, %(measured)s)

-- name: index_release (one)
-- Indexes and statistics of the release's tables. Locks: run row and lease row in share, the tables.
select index_release(%(run)s, %(executor)s)

-- name: verify_release (one)
-- The gate before completion. Locks: run row, lease row in share.
select verify_release(%(run)s, %(executor)s) as report

-- name: list_rejects (many)
-- The first rejects of a run in the order of its files (primary key).
select artifact, position, byte_offset, reason, detail
from import_reject where run_id = %(run)s
order by artifact, position, reason limit %(limit)s
