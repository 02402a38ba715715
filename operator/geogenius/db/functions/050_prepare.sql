-- Refuses a manifest or a claim that is not one. What is inside them is checked by the types and CHECKs of the tables.
-- Locks: none. Errors: 22023 bad_manifest, bad_claim.
create or replace function check_request(wanted jsonb, claim jsonb) returns void
language plpgsql stable set search_path from current as $$
declare
    strange text := (
        select string_agg(k, ', ' order by k)
        from jsonb_object_keys(case jsonb_typeof(claim) when 'object' then claim end) k
        where not k = any (claim_keys())
    );
    blank text := (
        select string_agg(k, ', ' order by k) from unnest(array['run_id', 'owner', 'runner_backend']) k
        where coalesce(claim ->> k, '') = ''
    );
begin
    if not coalesce(
        jsonb_typeof(wanted -> 'collection') = 'string' and jsonb_typeof(wanted -> 'release') = 'string'
            and jsonb_typeof(wanted -> 'authorities') = 'array' and jsonb_typeof(wanted -> 'area_types') = 'array'
            and jsonb_typeof(wanted -> 'sources') = 'array', false
    ) then
        perform refuse('22023', 'bad_manifest',
            'a manifest has the texts collection and release and the lists authorities, area_types and sources');
    elsif blank is not null then
        perform refuse('22023', 'bad_claim', format('a claim needs %s', blank));
    elsif strange is not null then
        perform refuse('22023', 'bad_claim', format('a claim does not have %s', strange));
    elsif not (claim ->> 'run_id') ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        perform refuse('22023', 'bad_claim', 'run_id is not a uuid');
    end if;
end
$$;

-- Whether readers have ever seen this release. Locks: none.
create or replace function was_published(release uuid) returns boolean
language plpgsql stable set search_path from current as $$
begin
    return exists (select from publication p where p.release_id = release)
        or exists (select from publication p where p.previous_release_id = release)
        or exists (select from publication_event e where e.release_id = release);
end
$$;

-- The answer to a request for a release that is known; reason null for a new one. The table of decisions: the first
-- line that fits counts. Reads only. Locks: none (the caller holds the release lock).
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
        when coalesce(beat <= catalog_now() - make_interval(secs => latest.stale_after_seconds), true)
            then 'stale_import'
        when same and latest.owner = claim ->> 'owner' then 'same_owner'
        else 'live_import'
    end;
    answer.decision := case answer.reason
        when 'same_owner' then 'enqueue' when 'completed' then 'existing' else 'error' end;
    if answer.reason <> 'protected' then
        answer.run_id := latest.id;
        answer.attempt := latest.attempt;
    end if;
    return answer;
end
$$;

-- Registers an import or says why not; a refusal writes nothing. A call repeated with the same run_id finds its run.
-- `wanted`: the manifest in normal form. `claim`: run_id, owner, runner_backend and further columns of import_run.
-- Locks: release; when registering: collection row (so that source definitions cannot change between check and write).
-- Errors: 22023 bad_manifest, bad_claim; 55000 run_id_taken; 22, 23 from types and CHECKs.
create or replace function prepare_import(wanted jsonb, claim jsonb) returns import_decision
language plpgsql security definer set search_path from current as $$
declare
    answer import_decision;
    home uuid;
begin
    perform check_request(wanted, claim);
    perform lock_release(wanted ->> 'collection', wanted ->> 'release');
    answer := judge_import(wanted, claim);
    if answer.reason is not null then
        return answer;
    end if;
    -- If this insert makes the collection, it has no sources yet; so a refusal below has still written nothing.
    insert into collection (key, created_at) values (wanted ->> 'collection', catalog_now()) on conflict do nothing;
    select id into home from collection where key = wanted ->> 'collection' for no key update;
    if source_definition_changed(wanted) then
        return row('error', 'source_definition_changed', null, null, null)::import_decision;
    end if;
    return begin_run(register_release(wanted, home), 1, 'registered', wanted, claim);
end
$$;
