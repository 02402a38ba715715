-- Ends a run: evidence moves from the lease to the run, the lease goes. Locks: held by the caller (lock_run).
create or replace function end_run(run uuid, ending run_state, figures jsonb, why jsonb) returns void
language plpgsql set search_path from current as $$
begin
    update import_run i
    set state = ending, completed_at = catalog_now(), error = why, metrics = i.metrics || figures,
        executor_id = l.executor_id, execution_started_at = l.execution_started_at,
        last_heartbeat_at = l.heartbeat_at, last_progress_at = l.progress_at, progress = l.progress
    from import_run_lease l
    where i.id = run and l.run_id = run;
    delete from import_run_lease where run_id = run;
end
$$;

-- Completes a run and its release in the caller's transaction.
-- Locks: run row, lease row (FOR UPDATE), release tables as in attach_release_table.
-- Errors: those of the fence; 23514 artifact_unobserved, not_verified; 22004 null_argument.
create or replace function finish_import(run uuid, executor uuid, phase run_state, figures jsonb) returns uuid
language plpgsql set search_path from current as $$
declare
    target uuid;
begin
    perform refuse_null('figures', figures is null);
    perform lock_run(run);
    target := assert_import_write(run, executor, array[phase]);
    if exists (select from import_run_artifact where run_id = run and observed_at is null) then
        perform refuse('23514', 'artifact_unobserved', format('run %s has files that were never seen', run));
    elsif not exists (select from import_run where id = run and (verification ->> 'ok')::boolean) then
        perform refuse('23514', 'not_verified', format('run %s did not pass verification', run));
    end if;
    perform attach_release(target);
    execute format('drop table if exists %I', staging_table(run));
    update release set completed_at = catalog_now(), filled = filled_tables(target) where id = target;
    perform end_run(run, 'completed', figures, null);
    return target;
end
$$;

-- Completes a run from phase verifying; the publication stays as it is. A second call is refused: read the run.
-- Locks and errors: finish_import.
create or replace function complete_import(run uuid, executor uuid, figures jsonb) returns uuid
language sql security definer set search_path from current as $$
    select finish_import(run, executor, 'verifying', figures)
$$;

-- Records the failure of a run and drops its tables. `why`: {phase, reason, message, evidence}. A second failure
-- changes nothing: the first evidence stays. A run that nobody claimed takes the caller's executor.
-- Locks: release, run row, lease row, the run's own tables. Waits for a fenced write in flight.
-- Errors: 22004 null_argument; 23503 unknown_run; 55000 run_completed, lease_lost.
create or replace function fail_import(run uuid, executor uuid, why jsonb) returns void
language plpgsql security definer set search_path from current as $$
declare
    failing import_run;
    holder uuid;
begin
    perform refuse_null('executor', executor is null), refuse_null('why', why is null);
    perform lock_release_of(run);
    perform lock_run(run);
    select * into failing from import_run where id = run;
    if not found then
        perform refuse('23503', 'unknown_run', format('no run %s', run));
    elsif failing.state = 'completed' then
        perform refuse('55000', 'run_completed', format('run %s is completed and cannot fail', run));
    elsif failing.state = 'failed' then
        return;
    end if;
    update import_run_lease
    set executor_id = executor, execution_started_at = catalog_now()
    where run_id = run and executor_id is null;
    select executor_id into holder from import_run_lease where run_id = run;
    if not coalesce(holder = executor, false) then
        perform refuse('55000', 'lease_lost', format('run %s is not executed by %s', run, executor));
    end if;
    perform end_run(run, 'failed', '{}', why);
    execute format('drop table if exists %I', staging_table(run));
    perform drop_release_tables(failing.release_id);
end
$$;
