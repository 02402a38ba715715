-- Why this manifest cannot be registered as a new release; null if it can. Reads only.
-- Locks: none (prepare_import holds the release lock).
create or replace function judge_import(wanted jsonb, claim jsonb) returns import_decision
language plpgsql stable set search_path from current as $$
declare
    target release;
    latest import_run;
    beat timestamptz;
    same boolean;
    answer import_decision;
begin
    select r.* into target from release r join collection c on c.id = r.collection_id
    where c.key = wanted ->> 'collection' and r.release_key = wanted ->> 'release';
    if not found then
        return null;
    end if;
    select * into latest from import_run where release_id = target.id order by attempt desc limit 1;
    select heartbeat_at into beat from import_run_lease where run_id = latest.id;
    same := latest.manifest = wanted and target.manifest = wanted;
    answer.release_id := target.id;
    answer.reason := case
        -- the very run this call asked for: its first answer was lost
        when latest.state = 'completed' and same and latest.id = (claim ->> 'run_id')::uuid then 'completed'
        when target.retired_at is not null or was_published(target.id) then 'protected'
        when latest.id is null then 'orphan_candidate'
        when latest.state = 'completed' and same then 'completed'
        when latest.state = 'failed' and same then 'failed'
        when latest.state in ('completed', 'failed') then 'manifest_changed'
        when coalesce(beat <= catalog_now() - make_interval(secs => latest.stale_after_seconds), true) then 'stale_import'
        when same and latest.owner = claim ->> 'owner' then 'same_owner'
        else 'live_import'
    end;
    answer.decision := case answer.reason when 'same_owner' then 'enqueue' when 'completed' then 'existing' else 'error' end;
    if answer.reason <> 'protected' then
        answer.run_id := latest.id;
        answer.attempt := latest.attempt;
    end if;
    return answer;
end
$$;

-- Whether readers have ever seen this release. Locks: none.
create or replace function was_published(release uuid) returns boolean
language sql stable set search_path from current as $$
    select exists (select from publication p where release in (p.release_id, p.previous_release_id))
        or exists (select from publication_event e where release in (e.release_id, e.previous_release_id))
$$;

-- Registers an import or says why not; a refusal writes nothing. A call repeated with the same run_id finds its run.
-- `wanted`: the manifest in normal form. `claim`: run_id, owner, runner_backend and further columns of import_run.
-- Locks: release; when registering: collection row (so that source definitions cannot change between check and write).
-- Errors: 22023 bad_claim; 55000 run_id_taken; 23514 from the CHECKs.
create or replace function prepare_import(wanted jsonb, claim jsonb) returns import_decision
language plpgsql set search_path from current as $$
declare
    answer import_decision;
begin
    if not coalesce(claim ?& array['run_id', 'owner', 'runner_backend'], false) then
        perform refuse('22023', 'bad_claim', 'a claim needs run_id, owner and runner_backend');
    end if;
    perform lock_release(wanted ->> 'collection', wanted ->> 'release');
    answer := judge_import(wanted, claim);
    if answer.reason is not null then
        return answer;
    elsif exists (select from import_run where id = (claim ->> 'run_id')::uuid) then
        perform refuse('55000', 'run_id_taken', format('run %s builds another release', claim ->> 'run_id'));
    end if;
    -- If this insert makes the collection, it has no sources yet; so a refusal below has still written nothing.
    insert into collection (key, created_at) values (wanted ->> 'collection', catalog_now()) on conflict do nothing;
    perform from collection where key = wanted ->> 'collection' for no key update;
    if source_definition_changed(wanted) then
        return row('error', 'source_definition_changed', null, null, null)::import_decision;
    end if;
    return register_import(wanted, claim);
end
$$;
