-- Makes a process the one executor of a run. Repeating it with the same executor before the first phase is harmless.
-- Answers: claimed, occupied, completed, failed, missing, superseded. A claim proves that the start was accepted.
-- Locks: release, run row, lease row. Errors: 22004 null_argument.
create or replace function claim_import_execution(run uuid, executor uuid) returns text
language plpgsql security definer set search_path from current as $$
declare
    wanted import_run;
    holder import_run_lease;
begin
    perform refuse_null('executor', executor is null);
    perform lock_release_of(run);
    select * into wanted from import_run where id = run for no key update;
    if not found then
        return 'missing';
    elsif exists (select from import_run where release_id = wanted.release_id and attempt > wanted.attempt) then
        return 'superseded';
    elsif wanted.state in ('completed', 'failed') then
        return wanted.state;
    elsif wanted.state <> 'pending' then
        return 'occupied';
    end if;
    select * into holder from import_run_lease where run_id = run for no key update;
    if holder.executor_id = executor then
        return 'claimed';
    elsif not found or holder.executor_id is not null then
        return 'occupied';
    end if;
    update import_run_lease
    set executor_id = executor, execution_started_at = catalog_now(), heartbeat_at = catalog_now()
    where run_id = run;
    perform record_enqueue(run, 'accepted', 'claimed by an executor', null);
    return 'claimed';
end
$$;

-- Moves a run to its single next phase, merges metrics, renews the heartbeat. Ends are not phases.
-- Locks: run row, lease row. Errors: those of the fence; 55000 wrong_phase for every other edge;
-- 22004 null_argument.
create or replace function advance_import(run uuid, executor uuid, next run_state, figures jsonb) returns void
language plpgsql security definer set search_path from current as $$
begin
    perform refuse_null('next', next is null), refuse_null('figures', figures is null);
    perform assert_import_write(run, executor, array(select e.state from run_state_edge e where e.next_state = next));
    update import_run i set state = next, metrics = i.metrics || figures
    from run_state_edge e
    where i.id = run and e.next_state = next and i.state = e.state;
    if not found then
        perform refuse('55000', 'wrong_phase', format('run %s was moved meanwhile', run));
    end if;
    update import_run_lease set heartbeat_at = catalog_now() where run_id = run;
end
$$;

-- Says that the executor lives, and how far it is. A plain update of the lease: it never waits for a fenced write.
-- Locks: lease row. Errors: 55000 lease_lost, also after the end of the run; 22004 null_argument.
create or replace function heartbeat_import(run uuid, executor uuid, news jsonb) returns void
language plpgsql security definer set search_path from current as $$
begin
    perform refuse_null('news', news is null);
    update import_run_lease l
    set heartbeat_at = catalog_now(),
        progress_at = case when l.progress @> news then l.progress_at else catalog_now() end,
        progress = l.progress || news
    where l.run_id = run and l.executor_id = executor;
    if not found then
        perform refuse('55000', 'lease_lost', format('run %s is not executed by %s', run, executor));
    end if;
end
$$;

-- Keeps what is known about the start of a run. `accepted` is final: later doubts and refusals change nothing, nor
-- does anything after the end. Repeating an answer keeps its time, so that it tells how long it has held.
-- Locks: run row. Errors: 22004 null_argument; 23503 unknown_run; 22023 bad_enqueue_state for `intended`, which
-- registration alone writes.
create or replace function record_enqueue(run uuid, answer enqueue_state, why text, uid text) returns void
language plpgsql security definer set search_path from current as $$
begin
    perform refuse_null('answer', answer is null);
    if answer = 'intended' then
        perform refuse('22023', 'bad_enqueue_state', 'intended is written by registration alone');
    elsif not exists (select from import_run where id = run) then
        perform refuse('23503', 'unknown_run', format('no run %s', run));
    end if;
    update import_run i
    set enqueue_state = answer,
        enqueue_changed_at = case when i.enqueue_state = answer then i.enqueue_changed_at else catalog_now() end,
        enqueue_reason = case when i.enqueue_state = 'accepted' then i.enqueue_reason else why end,
        workload_uid = coalesce(i.workload_uid, (case when i.workload_name is not null then uid end)::uuid)
    where i.id = run and i.completed_at is null and (i.enqueue_state <> 'accepted' or answer = 'accepted');
end
$$;

-- Asks the executor of a run to stop; whether it did is told by the end of the run. Repeating it keeps the first time.
-- Answers: requested, or how the run has ended: completed, failed. Locks: run row. Errors: 23503 unknown_run.
create or replace function request_cancel(run uuid) returns text
language plpgsql security definer set search_path from current as $$
declare
    ended text;
begin
    select case when state in ('completed', 'failed') then state::text end into ended
    from import_run where id = run for no key update;
    if not found then
        perform refuse('23503', 'unknown_run', format('no run %s', run));
    end if;
    update import_run set cancel_requested_at = catalog_now()
    where id = run and ended is null and cancel_requested_at is null;
    return coalesce(ended, 'requested');
end
$$;
