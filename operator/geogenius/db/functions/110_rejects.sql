-- The identity of an area in its collection. Authority and type hold no colon, so it is unambiguous.
-- Without a pinned search_path, so that it is inlined; it uses nothing but operators of pg_catalog.
create or replace function area_key(authority text, area_type text, code text) returns text
language sql immutable parallel safe as $$ select (authority || ':' || area_type || ':' || code) collate "C" $$;

-- Repairs what is not valid in a staging table: temporary table `repaired`, `geom` null where no polygon is left.
-- Locks: none.
create or replace function repair_staged(staging text) returns void
language plpgsql set search_path from current as $$
begin
    drop table if exists pg_temp.repaired;
    execute format($sql$
        create temporary table repaired on commit drop as
        select s.id, s.artifact, s.position, case when not ST_IsEmpty(made.geom) then made.geom end as geom,
            case when ST_IsEmpty(s.geom) then 'Empty geometry' else ST_IsValidReason(s.geom) end as reason
        from %I s, lateral (
            select ST_Multi(ST_CollectionExtract(ST_MakeValid(s.geom, 'method=structure keepcollapsed=false'), 3))
            offset 0  -- evaluated once a row
        ) made (geom)
        where s.geom is not null and (ST_IsEmpty(s.geom) or not ST_IsValid(s.geom))
    $sql$, staging);
    analyze pg_temp.repaired;
end
$$;

-- Finds the staged rows that share their area key, among rows with a usable geometry: temporary table `repeated`.
-- `occurrence` numbers the rows of one source as the manifest has them, `contribution` the sources of a key, whatever
-- the order of staging. Rows of a file that the run does not know come last, as one source. Locks: none.
create or replace function find_repeated(run uuid, staging text) returns void
language plpgsql set search_path from current as $$
begin
    drop table if exists pg_temp.repeated;
    execute format(
        $sql$
            create temporary table repeated on commit drop as
            with file as (
                select a.logical_name as artifact, u.ordinal, min(u.ordinal) over (partition by v.source_id) as source
                from import_run_artifact u
                join artifact a on a.id = u.artifact_id
                join source_release v on v.id = a.source_release_id
                where u.run_id = %L
            ), several as materialized (
                select area_key(s.authority, s.area_type, s.code) as area_key from %I s group by 1 having count(*) > 1
            )
            select s.id, s.artifact, s.position, k.area_key,
                row_number() over same_source as occurrence,
                first_value(s.position) over same_source as first_position,
                first_value(s.artifact) over same_source as first_artifact,
                dense_rank() over (partition by k.area_key order by f.source) as contribution
            from %I s
            join several k on k.area_key = area_key(s.authority, s.area_type, s.code)
            left join file f on f.artifact = s.artifact
            where not exists (select from pg_temp.repaired r where r.id = s.id and r.geom is null)
            window same_source as (partition by k.area_key, f.source order by f.ordinal, s.artifact, s.position, s.id)
        $sql$,
        run, staging, staging
    );
    analyze pg_temp.repeated;
end
$$;

-- Keeps as rejects the rows without a usable geometry, and all but the first row of each key within a source.
-- Locks: the rows.
create or replace function reject_staged(run uuid) returns void
language plpgsql set search_path from current as $$
begin
    insert into import_reject (run_id, artifact, position, reason, detail)
    select run, r.artifact, r.position, 'empty_geometry', left('no polygon is left: ' || r.reason, 200)
    from pg_temp.repaired r where r.geom is null
    union all
    select run, r.artifact, r.position, 'duplicate_code', left(
        format('area %s was read before at position %s of %s', r.area_key, r.first_position, r.first_artifact), 200
    )
    from pg_temp.repeated r where r.occurrence > 1
    on conflict do nothing;
end
$$;
