-- name: prepare_import (one)
-- Registers an import or says why not. Locks: release, collection row.
select * from prepare_import(%(manifest)s, %(claim)s)

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

-- name: fail_import (one)
-- Ends the run as failed. Locks: release, run row, lease row, the run's tables.
select fail_import(%(run)s, %(executor)s, %(error)s)

-- name: record_enqueue (one)
-- Keeps what is known about the start of the run. Locks: run row.
select record_enqueue(%(run)s, %(state)s, %(reason)s, %(workload_uid)s)

-- name: record_artifact_observation (one)
-- Keeps what was seen of a file. Locks: run row and lease row in share, selection row.
select record_artifact_observation(%(run)s, %(executor)s, %(artifact)s, %(sha256)s, %(bytes)s)

-- name: get_run (at most one)
-- A run by its id (primary key).
select * from import_run_status where run_id = %(run)s

-- name: find_run_by_request (at most one)
-- The latest run of an ImportRequest (import_run_request).
select * from import_run_status where request_uid = %(request)s order by created_at desc, attempt desc limit 1

-- name: live_runs_of_cluster (many)
-- Runs of a cluster that have not ended, oldest first (import_run_live_of_cluster).
select * from import_run_status
where cluster_id = %(cluster)s and state not in ('completed', 'failed')
order by created_at, run_id

-- name: live_runs_of_request (many)
-- Runs of a cluster asked for by requests of one name that have not ended (import_run_live_of_cluster).
select * from import_run_status
where cluster_id = %(cluster)s and state not in ('completed', 'failed')
    and request_namespace = %(namespace)s and request_name = %(name)s
order by created_at, run_id

-- name: get_manifest (at most one)
-- The manifest that a run executes, in normal form (primary key).
select manifest from import_run where id = %(run)s

-- name: run_artifacts (many)
-- The files of a run in the order of its manifest (primary key).
select u.artifact_id, s.source_key, v.release_key as source_release, s.provider, a.logical_name,
    u.format, u.sha256, u.bytes, u.url, u.observed_at is not null as observed
from import_run_artifact u
join artifact a on a.id = u.artifact_id
join source_release v on v.id = a.source_release_id
join source s on s.id = v.source_id
where u.run_id = %(run)s
order by u.ordinal
