-- Whether this schema has a table of this name. Names that are derived from ids are asked for here before they are
-- used: the search path ends in pg_temp, and what a caller made there must never be taken for ours.
create or replace function has_own_table(wanted text) returns boolean
language plpgsql stable set search_path from current as $$
begin
    return exists (
        select from pg_class
        where relnamespace = current_schema()::regnamespace and relname = wanted and relkind in ('r', 'p')
    );
end
$$;

-- The tables of which every release has one of its own.
create or replace function release_parents() returns text[]
language sql immutable parallel safe set search_path from current as $$
    select array['release_area', 'boundary', 'boundary_part', 'area_name', 'area_code', 'relation']
$$;

-- Makes one empty table of a release, standalone. The CHECKs are what the partition bounds will be, so that attaching
-- it later scans nothing. Locks: the table.
create or replace function create_release_table(parent text, release uuid, collection_key text) returns void
language plpgsql set search_path from current as $$
begin
    execute format(
        $ddl$
            create table %I (
                like %I including constraints including compression including defaults,
                constraint collection_bound check (collection_key = %L),
                constraint release_bound check (release_id = %L::uuid)
            )
        $ddl$,
        release_table(parent, release), parent, collection_key, release
    );
end
$$;

-- Makes the empty tables of a release, standalone, in place of older ones. Locks: the tables.
create or replace function create_release_tables(release uuid, collection_key text) returns void
language plpgsql set search_path from current as $$
begin
    perform drop_release_tables(release);
    perform create_release_table(parent, release, collection_key) from unnest(release_parents()) parent;
end
$$;

-- Drops the tables of a release that was never completed. Locks: the tables.
create or replace function drop_release_tables(release uuid) returns void
language plpgsql set search_path from current as $$
begin
    execute (
        select 'drop table if exists ' || string_agg(quote_ident(release_table(parent, release)), ', ')
        from unnest(release_parents()) parent
    );
end
$$;

-- Refuses a release whose tables were not made yet: a phase was passed without its work. Locks: none.
-- Errors: 55000 not_merged.
create or replace function assert_merged(release uuid) returns void
language plpgsql stable set search_path from current as $$
begin
    if not (select bool_and(has_own_table(release_table(parent, release))) from unnest(release_parents()) parent) then
        perform refuse('55000', 'not_merged', format('release %s was not merged yet', release));
    end if;
end
$$;

-- Which of the further tables of a release hold rows. Reads only.
create or replace function filled_tables(release uuid) returns text[]
language plpgsql stable set search_path from current as $$
declare
    filled text[] := '{}';
    parent text;
    holds boolean;
begin
    foreach parent in array array['boundary_part', 'area_name', 'area_code', 'relation'] loop
        execute format('select exists (select from %I)', release_table(parent, release)) into holds;
        if holds then
            filled := filled || parent;
        end if;
    end loop;
    return filled;
end
$$;
