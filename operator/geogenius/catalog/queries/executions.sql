-- name: claim_import_execution (one)
-- Makes the caller the executor of the run. Locks: release, run row, lease row.
select claim_import_execution(%(run)s, %(executor)s) as claim

-- name: advance_import (one)
-- Moves the run to its next phase. Locks: run row, lease row.
select advance_import(%(run)s, %(executor)s, %(phase)s, %(metrics)s)

-- name: heartbeat_import (one)
-- Says that the executor lives. Locks: lease row; waits for no fenced write.
select heartbeat_import(%(run)s, %(executor)s, %(progress)s)

-- name: complete_import (one)
-- Ends the run with its release complete. Locks: run row, lease row, release tables.
select complete_import(%(run)s, %(executor)s, %(metrics)s)

-- name: publish_import (one)
-- Ends the run with its release complete and published. Locks: publication, run row, lease row, release tables.
select publish_import(%(run)s, %(executor)s)

-- name: record_artifact_observation (one)
-- Keeps what was seen of a file. Locks: run row and lease row in share, selection row.
select record_artifact_observation(%(run)s, %(executor)s, %(artifact)s, %(sha256)s, %(bytes)s)
