-- The areas of a release, counted by type; its tables need not be attached. Reads only.
create or replace function count_areas(release uuid) returns jsonb
language plpgsql stable set search_path from current as $$
declare
    counts jsonb;
begin
    execute format(
        $sql$
            select coalesce(jsonb_object_agg(t.area_type, t.many), '{}')
            from (select area_type, count(*) as many from %I group by 1) t
        $sql$,
        release_table('release_area', release)
    ) into counts;
    return counts;
end
$$;

-- What is unsound in the tables of a release: one sentence per kind of fault. Reads only.
create or replace function release_faults(release uuid) returns setof text
language plpgsql stable set search_path from current as $$
begin
    return query execute format(
        $sql$
            with area as (
                select a.area_number, w.requires_geometry, w.area_type_id is null as strange_type,
                    g.authority_id is null as strange_authority
                from %1$I a
                left join (area_type t join release_area_type w on w.area_type_id = t.id and w.release_id = $1)
                    on t.key = a.area_type
                left join (authority k join release_authority g on g.authority_id = k.id and g.release_id = $1)
                    on k.key = a.authority
            ), fault (many, sentence) as (
                select (not exists (select from area))::integer, 'the release has no areas'
                union all
                select count(*), count(*) || ' areas lack the boundary that their type requires' from area a
                where a.requires_geometry and not exists (select from %2$I b where b.area_number = a.area_number)
                union all
                select count(*), count(*) || ' boundaries are not valid' from %2$I b where not ST_IsValid(b.geom)
                union all
                select count(*), count(*) || ' areas are of a type that the release does not declare' from area
                where strange_type
                union all
                select count(*), count(*) || ' areas are of an authority that the release does not declare' from area
                where strange_authority
            )
            select sentence from fault where many > 0
        $sql$,
        release_table('release_area', release), release_table('boundary', release)
    ) using release;
end
$$;

-- Whether a release can be read fast: the phase before verification may have been passed without its work.
create or replace function release_unindexed(release uuid) returns setof text
language sql stable set search_path from current as $$
    select 'the release is not indexed'
    where not exists (
        select from pg_index
        where indrelid = to_regclass(release_table('release_area', release)) and indisunique and indisvalid
    )
$$;

-- Rows of a release that refer to areas it does not have: one sentence per table. Without foreign keys nothing else
-- proves it. Reads only.
create or replace function release_strays(release uuid) returns setof text
language plpgsql stable set search_path from current as $$
declare
    checked record;
    strays bigint;
begin
    for checked in
        select * from (values
            ('boundary', 'area_number'), ('boundary_part', 'area_number'), ('area_name', 'area_number'),
            ('area_code', 'area_number'), ('relation', 'parent_number'), ('relation', 'child_number')
        ) c (parent, number)
    loop
        execute format(
            'select count(*) from %I x where not exists (select from %I a where a.area_number = x.%I)',
            release_table(checked.parent, release), release_table('release_area', release), checked.number
        ) into strays;
        if strays > 0 then
            return next format('%s rows of %s have a %s that no area has', strays, checked.parent, checked.number);
        end if;
    end loop;
end
$$;
