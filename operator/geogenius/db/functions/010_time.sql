-- Functions of one expression over pg_catalog have no pinned search_path, so that they are inlined: planning them in
-- every call would cost more than they do.

-- The clock of the catalog: the start of the transaction, unless a session of the owner sets
-- `geogenius.now` (tests do); from anybody else it is not heard.
create or replace function catalog_now() returns timestamptz
language sql stable parallel safe as $$
    select case
        when current_setting('geogenius.now', true) <> ''
            and has_schema_privilege(session_user, current_schema(), 'create')
        then current_setting('geogenius.now', true)::timestamptz else now() end
$$;

-- The same clock at this very moment, for what happens after a wait for a lock: a transaction that began first may
-- move the pointer last.
create or replace function catalog_clock() returns timestamptz
language sql volatile as $$
    select case
        when current_setting('geogenius.now', true) <> ''
            and has_schema_privilege(session_user, current_schema(), 'create')
        then current_setting('geogenius.now', true)::timestamptz else clock_timestamp() end
$$;
