-- name: try_lead (one)
-- Takes the leadership of this schema's operators if nobody has it. Locks: advisory, not waited for.
select pg_try_advisory_xact_lock(hashtextextended('geogenius leader ' || current_schema(), 0)) as leads

-- name: still_leads (one)
-- Whether this transaction is alive; one that answers holds its locks.
select true as leads
