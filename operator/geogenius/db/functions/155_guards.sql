-- What no function may do by mistake, nor a hand: the tables refuse it themselves.

-- In the order in which registrations and ends take them.
lock table release, import_run, publication in share row exclusive mode;

-- A run that has ended never changes again. Errors: 55000 run_ended.
create or replace function guard_ended_run() returns trigger
language plpgsql set search_path from current as $$
begin
    perform refuse('55000', 'run_ended', format('run %s is %s and never changes again', old.id, old.state));
    return null;
end
$$;
create or replace trigger import_run_ended before update on import_run
for each row when (old.completed_at is not null) execute function guard_ended_run();

-- A complete release never changes again, but that it is retired once. Errors: 55000 release_frozen.
create or replace function guard_complete_release() returns trigger
language plpgsql set search_path from current as $$
begin
    if (new.id, new.collection_id, new.release_key, new.manifest, new.created_at, new.completed_at, new.filled)
        is distinct from
        (old.id, old.collection_id, old.release_key, old.manifest, old.created_at, old.completed_at, old.filled)
        or old.retired_at is not null
    then
        perform refuse('55000', 'release_frozen',
            format('release %s is complete and never changes again', old.release_key));
    end if;
    return new;
end
$$;
create or replace trigger release_complete before update on release
for each row when (old.completed_at is not null) execute function guard_complete_release();

-- The pointer leads to complete releases that are not retired. Errors: 55000 release_incomplete, release_retired.
create or replace function guard_publication() returns trigger
language plpgsql set search_path from current as $$
declare
    target release;
begin
    select * into target from release where id = new.release_id;
    if target.completed_at is null then
        perform refuse('55000', 'release_incomplete', format('release %s is not complete', target.release_key));
    elsif target.retired_at is not null then
        perform refuse('55000', 'release_retired', format('release %s is retired', target.release_key));
    end if;
    return new;
end
$$;
create or replace trigger publication_of_complete_release before insert or update on publication
for each row execute function guard_publication();

-- Readers are never left with a retired release. Errors: 55000 release_published.
create or replace function guard_retirement() returns trigger
language plpgsql set search_path from current as $$
begin
    if exists (select from publication where release_id = new.id) then
        perform refuse('55000', 'release_published', format('release %s is published', new.release_key));
    end if;
    return new;
end
$$;
create or replace trigger release_retired before update on release
for each row when (old.retired_at is null and new.retired_at is not null) execute function guard_retirement();
