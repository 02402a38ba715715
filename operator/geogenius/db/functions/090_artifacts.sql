-- Keeps what was seen of a file. Repeating an observation keeps its first time.
-- Locks: those of the fence, artifact row. Errors: those of the fence; 23503 unknown_artifact;
-- 23514 artifact_mismatch (not the reviewed file).
create or replace function record_artifact_observation(
    run uuid, executor uuid, artifact uuid, seen_sha256 text, seen_bytes bigint
) returns void
language plpgsql security definer set search_path from current as $$
declare
    known import_run_artifact;
begin
    perform assert_import_write(run, executor, array['downloading', 'validating']::run_state[]);
    select * into known from import_run_artifact u where u.run_id = run and u.artifact_id = artifact for no key update;
    if not found then
        perform refuse('23503', 'unknown_artifact', format('run %s has no artifact %s', run, artifact));
    elsif (known.sha256, known.bytes) is distinct from (lower(seen_sha256), seen_bytes) then
        perform refuse('23514', 'artifact_mismatch', format(
            'expected %s bytes with sha256 %s, found %s bytes with sha256 %s',
            known.bytes, known.sha256, seen_bytes, lower(seen_sha256)
        ));
    end if;
    -- What does not match is refused above, so a second observation can only be the same.
    update import_run_artifact u
    set observed_sha256 = known.sha256, observed_bytes = known.bytes, observed_at = catalog_now()
    where u.run_id = run and u.artifact_id = artifact and u.observed_at is null;
end
$$;
