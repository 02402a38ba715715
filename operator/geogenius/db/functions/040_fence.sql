-- The fence: every write of an import goes through it, in the same transaction. Gives the release id.
-- Locks: run row, lease row (both FOR KEY SHARE: heartbeats and phase changes pass, ends wait).
-- Errors: 23503 unknown_run; 55000 superseded, release_frozen, lease_lost, wrong_phase.
create or replace function assert_import_write(run uuid, executor uuid, permitted run_state[]) returns uuid
language plpgsql security definer set search_path from current as $$
declare
    held import_run;
    holder uuid;
begin
    select * into held from import_run where id = run for key share;
    if not found then
        perform refuse('23503', 'unknown_run', format('no run %s', run));
    end if;
    select executor_id into holder from import_run_lease where run_id = run for key share;
    if exists (select from import_run where release_id = held.release_id and attempt > held.attempt) then
        perform refuse('55000', 'superseded', format('run %s has a later attempt', run));
    elsif not coalesce(holder = executor, false) then
        perform refuse('55000', 'lease_lost', format('run %s (%s) is not executed by %s', run, held.state, executor));
    elsif exists (select from release where id = held.release_id and completed_at is not null) then
        perform refuse('55000', 'release_frozen', format('the release of run %s is completed', run));
    elsif held.state <> all (permitted) then
        perform refuse('55000', 'wrong_phase', format('run %s is %s; this needs %s', run, held.state, permitted));
    end if;
    return held.release_id;
end
$$;
