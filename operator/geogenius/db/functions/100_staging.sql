-- Names of the tables of a run and of a release: hexadecimal only, so no caller's text reaches an identifier.
create or replace function staging_table(run uuid) returns text
language sql immutable parallel safe as $$ select 'staging_' || replace(run::text, '-', '') $$;

create or replace function release_table(parent text, release uuid) returns text
language sql immutable parallel safe as $$ select parent || '_' || replace(release::text, '-', '') $$;

-- Makes the empty staging table of a run, in place of an older one, and lets writers fill it by COPY. Unlogged: it
-- never outlives its run, and what a crash takes from it is noticed when it is merged (assert_staged).
-- names: [[name, kind, locale]], codes: [[code_type, code_value]], parents: [[area_key, relation_type]]; null for none.
-- Locks: those of the fence, the table. Errors: those of the fence.
create or replace function create_staging(run uuid, executor uuid) returns void
language plpgsql security definer set search_path from current as $$
declare
    writer name;
begin
    perform assert_import_write(run, executor, array['staging']::run_state[]);
    execute format('drop table if exists %I', staging_table(run));
    execute format(
        $ddl$
            create unlogged table %I (
                id bigint generated always as identity, artifact text not null, position bigint not null,
                authority text not null, area_type text not null, code text not null, name text,
                attributes jsonb not null, geom geometry(MultiPolygon, 4326) compression lz4,
                point geometry(Point, 4326), names jsonb, codes jsonb, parents jsonb
            )
        $ddl$,
        staging_table(run)
    );
    for writer in select role from catalog_role join pg_roles on rolname = role where access = 'writer' loop
        execute format('grant insert on %I to %I', staging_table(run), writer);
    end loop;
end
$$;

-- Keeps rows that cannot be imported. Repeating one keeps the first. Set-wise: the arrays have one length.
-- Locks: those of the fence, the rows. Errors: those of the fence.
create or replace function record_rejects(
    run uuid, executor uuid, artifact text, positions bigint[], reasons text[], byte_offsets bigint[], details text[]
) returns void
language plpgsql security definer set search_path from current as $$
begin
    perform assert_import_write(run, executor, array['staging']::run_state[]);
    insert into import_reject (run_id, artifact, position, reason, byte_offset, detail)
    select run, record_rejects.artifact, r.position, r.reason, r.byte_offset, left(r.detail, 200)
    from unnest(positions, reasons, byte_offsets, details) r (position, reason, byte_offset, detail)
    on conflict do nothing;
end
$$;

-- The same as importers of 0.1 call it, in a transaction that has passed the fence: with the executor of the run.
create or replace function record_rejects(
    run uuid, artifact text, positions bigint[], reasons text[], byte_offsets bigint[], details text[]
) returns void
language plpgsql security definer set search_path from current as $$
begin
    perform record_rejects(
        run, (select l.executor_id from import_run_lease l where l.run_id = run), artifact, positions, reasons,
        byte_offsets, details
    );
end
$$;
