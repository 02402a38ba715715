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

-- Finds all but the first staged row of each area key, among rows with a usable geometry: temporary table `repeated`.
-- First is the lowest position of the first artifact, whatever the order of staging. Locks: none.
create or replace function find_repeated(staging text) returns void
language plpgsql set search_path from current as $$
begin
    drop table if exists pg_temp.repeated;
    execute format($sql$
        create temporary table repeated on commit drop as
        with keyed as (
            select s.id, s.artifact, s.position, area_key(s.authority, s.area_type, s.code) as area_key
            from %I s
            where not exists (select from pg_temp.repaired r where r.id = s.id and r.geom is null)
        )
        select * from (
            select k.*, row_number() over same_key as occurrence,
                first_value(k.position) over same_key as first_position,
                first_value(k.artifact) over same_key as first_artifact
            from keyed k
            where k.area_key in (select area_key from keyed group by area_key having count(*) > 1)
            window same_key as (partition by k.area_key order by k.artifact, k.position, k.id)
        ) found
        where occurrence > 1
    $sql$, staging);
    analyze pg_temp.repeated;
end
$$;

-- Keeps as rejects what repair_staged and find_repeated have found. Locks: the rows.
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
    from pg_temp.repeated r
    on conflict do nothing;
end
$$;
