-- Why a failed run cannot be retried, or the answer to a repeated call; reason null if it can. The first line that fits
-- counts. Reads only. Locks: none (retry_failed holds the release lock).
create or replace function judge_retry(failed_run uuid, wanted jsonb, claim jsonb) returns import_decision
language plpgsql stable set search_path from current as $$
declare
    lost import_run;
    target release;
    latest import_run;
    answer import_decision;
    retried boolean;
begin
    select * into lost from import_run where id = failed_run;
    if not found then
        return row('error', 'not_found', null, null, null)::import_decision;
    end if;
    select * into target from release where id = lost.release_id;
    select * into latest from import_run where release_id = target.id order by attempt desc limit 1;
    -- The attempt that an earlier call with this claim made: its answer was lost.
    retried := latest.attempt = lost.attempt + 1 and latest.manifest = wanted and (
        latest.id = (claim ->> 'run_id')::uuid
        or latest.state not in ('completed', 'failed') and latest.owner = claim ->> 'owner'
    );
    answer.release_id := target.id;
    answer.reason := case
        when not exists (
            select from collection c where c.id = target.collection_id
                and (c.key, target.release_key) = (wanted ->> 'collection', wanted ->> 'release')
        ) then 'candidate_mismatch'
        when retried and latest.state = 'completed' then 'completed'
        when target.completed_at is not null or target.retired_at is not null then 'protected'
        when retried and latest.state = 'failed' then 'failed'
        when retried then 'retried'
        when latest.id <> lost.id then 'not_latest_attempt'
        when lost.state <> 'failed' then 'not_failed'
    end;
    answer.decision := case answer.reason
        when 'retried' then 'enqueue' when 'completed' then 'existing' else 'error' end;
    if answer.reason not in ('protected', 'candidate_mismatch') then
        answer.run_id := latest.id;
        answer.attempt := latest.attempt;
    end if;
    return answer;
end
$$;

-- Registers the next attempt of a release whose latest run has failed; the manifest may have changed. Or says why not;
-- a refusal writes nothing. The failed run keeps its manifest, files, figures and error. A repeated call finds the
-- attempt that the first one made.
-- Locks: release; when registering: collection row. Errors: those of prepare_import.
create or replace function retry_failed(failed_run uuid, wanted jsonb, claim jsonb) returns import_decision
language plpgsql security definer set search_path from current as $$
declare
    answer import_decision;
    lost import_run;
begin
    perform check_request(wanted, claim);
    perform lock_release_of(failed_run);
    answer := judge_retry(failed_run, wanted, claim);
    if answer.reason is not null then
        return answer;
    end if;
    perform from collection where key = wanted ->> 'collection' for no key update;
    if source_definition_changed(wanted) then
        return row('error', 'source_definition_changed', answer.release_id, null, null)::import_decision;
    end if;
    select * into lost from import_run where id = failed_run;
    update release set manifest = wanted where id = lost.release_id;
    delete from release_authority where release_id = lost.release_id;
    delete from release_area_type where release_id = lost.release_id;
    perform register_policy(lost.release_id, wanted);
    return begin_run(lost.release_id, lost.attempt + 1, 'retried', wanted, claim);
end
$$;
