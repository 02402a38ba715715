-- Locks of the catalog, always taken in this order:
--   release (advisory) -> publication (advisory) -> collection row -> run row -> lease row -> release tables -> events
--   (advisory).
-- Advisory keys derive from text, so they can be taken before any row exists. They hold the name of the schema:
-- advisory locks belong to the whole database, and two catalogs in it must not wait for each other.
--
-- Functions that are `security definer` are the doors of the catalog: a writer may call them and touches no table
-- itself (see 190_access.sql). All others that write are rooms behind those doors.

-- Refuses on purpose: an SQLSTATE and a word in DETAIL, which db/errors.py maps. Nobody parses the message.
create or replace function refuse(code text, word text, message text) returns void
language plpgsql stable set search_path from current as $$
begin
    raise exception using errcode = code, detail = word, message = message;
end
$$;

-- Refuses an argument that must not be null, by its name. Errors: 22004 null_argument.
create or replace function refuse_null(argument text, missing boolean) returns void
language plpgsql stable set search_path from current as $$
begin
    if missing then
        perform refuse('22004', 'null_argument', format('%s must not be null', argument));
    end if;
end
$$;

-- The id of a collection. Errors: 23503 unknown_collection.
create or replace function require_collection(wanted text) returns uuid
language plpgsql stable set search_path from current as $$
declare
    home uuid := (select id from collection where key = wanted);
begin
    if home is null then
        perform refuse('23503', 'unknown_collection', format('no collection %s', coalesce(wanted, 'null')));
    end if;
    return home;
end
$$;

-- Serialises prepare, retry, claim and fail of one release. Locks: release.
create or replace function lock_release(collection_key text, release_key text) returns void
language plpgsql set search_path from current as $$
begin
    perform pg_advisory_xact_lock(hashtextextended(
        format('geogenius release %s %s %s', current_schema(), collection_key, release_key), 0
    ));
end
$$;

-- The same, for the release of a run; does nothing for an unknown run. Locks: release.
create or replace function lock_release_of(run uuid) returns void
language plpgsql set search_path from current as $$
begin
    perform lock_release(c.key, r.release_key)
    from import_run i join release r on r.id = i.release_id join collection c on c.id = r.collection_id
    where i.id = run;
end
$$;

-- Serialises moves of the pointer of one collection; no import waits for it. Locks: publication.
create or replace function lock_publication(collection_key text) returns void
language plpgsql set search_path from current as $$
begin
    perform pg_advisory_xact_lock(hashtextextended(
        format('geogenius publication %s %s', current_schema(), collection_key), 0
    ));
end
$$;

-- Makes the numbers of publication_event grow in the order of commits, over all collections: held to the end of the
-- transaction, and taken last. Locks: events.
create or replace function lock_events() returns void
language plpgsql set search_path from current as $$
begin
    perform pg_advisory_xact_lock(hashtextextended(format('geogenius events %s', current_schema()), 0));
end
$$;

-- Takes a run and its lease for an end: waits for every fenced write in flight and keeps new ones out.
-- Locks: run row, lease row (both FOR UPDATE).
create or replace function lock_run(run uuid) returns void
language plpgsql set search_path from current as $$
begin
    perform from import_run where id = run for update;
    perform from import_run_lease where run_id = run for update;
end
$$;
