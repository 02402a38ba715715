-- Edges that the rows of a release assert: temporary table `asserted`, child and parent by number; `parent` null where
-- the release has no such area. Rows that were rejected assert nothing. Locks: none.
create or replace function find_asserted(run uuid, release uuid) returns void
language plpgsql set search_path from current as $$
begin
    drop table if exists pg_temp.asserted;
    execute format(
        $sql$
            create temporary table asserted on commit drop as
            select c.area_number as child, p.area_number as parent, e ->> 1 as relation_type, c.area_key as child_key,
                e ->> 0 as parent_key, s.artifact, s.position
            from %1$I s
            join %2$I c on c.area_key = area_key(s.authority, s.area_type, s.code)
            cross join lateral jsonb_array_elements(s.parents) e
            left join %2$I p on p.area_key = e ->> 0
            where s.parents is not null and not exists (
                select from import_reject x where x.run_id = $1 and x.artifact = s.artifact and x.position = s.position
            )
        $sql$,
        staging_table(run), release_table('release_area', release)
    ) using run;
end
$$;

-- Refuses asserted edges to areas that the release does not have, and of an area to itself.
-- Locks: none. Errors: 23503 unknown_parent.
create or replace function check_asserted() returns void
language plpgsql stable set search_path from current as $$
declare
    wrong bigint;
    first text;
begin
    select count(*), string_agg(e.sentence, '; ' order by e.artifact, e.position) filter (where e.place <= 5)
    into wrong, first
    from (
        select a.artifact, a.position, row_number() over (order by a.artifact, a.position) as place,
            format('%s -> %s (%s position %s)', a.child_key, a.parent_key, a.artifact, a.position) as sentence
        from pg_temp.asserted a where a.parent is null or a.parent = a.child
    ) e;
    if wrong > 0 then
        perform refuse('23503', 'unknown_parent',
            format('%s parents are no other areas of the release: %s', wrong, first));
    end if;
end
$$;

-- Refuses to relate a release with areas whose staging table is empty: a crash of the server took what rows asserted.
-- Locks: none. Errors: 55000 staging_lost.
create or replace function assert_staging_left(run uuid, release uuid) returns void
language plpgsql stable set search_path from current as $$
declare
    lost boolean := not has_own_table(staging_table(run));
begin
    if not lost then
        execute format(
            'select exists (select from %I) and not exists (select from %I)',
            release_table('release_area', release), staging_table(run)
        ) into lost;
    end if;
    if lost then
        perform refuse('55000', 'staging_lost', 'the staged rows are gone: the database crashed meanwhile');
    end if;
end
$$;

-- Builds the relations of the release: those that its rows assert (of several kinds between two areas the strongest),
-- then, if wanted, the measured ones. Repeating it builds them anew.
-- Locks: those of the fence, the tables. Errors: those of the fence; 55000 not_merged, staging_lost; 23503
-- unknown_parent.
create or replace function relate_release(run uuid, executor uuid, want_measured boolean)
returns table (asserted bigint, measured bigint)
language plpgsql security definer set search_path from current set work_mem = '64MB' as $$
declare
    target uuid := assert_import_write(run, executor, array['relating']::run_state[]);
    collection_key text := (
        select c.key from release r join collection c on c.id = r.collection_id where r.id = target
    );
begin
    perform assert_merged(target);
    perform assert_staging_left(run, target);
    perform find_asserted(run, target);
    perform check_asserted();
    execute format('truncate %I', release_table('relation', target));
    execute format(
        $sql$
            insert into %I
            select distinct on (a.parent, a.child) $1, $2, a.parent, a.child, a.relation_type
            from pg_temp.asserted a
            order by a.parent, a.child,
                array_position(array['contains', 'mostly_contains', 'overlaps'], a.relation_type)
        $sql$,
        release_table('relation', target)
    ) using collection_key, target;
    get diagnostics asserted = row_count;
    measured := case when want_measured then measure_relations(target, collection_key) else 0 end;
    return next;
end
$$;
