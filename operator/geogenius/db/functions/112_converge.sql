-- What several sources say of one area, united: temporary table `united`, one row for each key with more than one
-- contribution, under the id of its first row. The first source that has a name, a boundary or a point gives it; of
-- attributes of one name, the first source's value stays. `boundary_id` is the staged row whose boundary is taken.
-- Locks: none.
create or replace function unite_staged(staging text) returns void
language plpgsql set search_path from current as $$
begin
    drop table if exists pg_temp.united;
    execute format(
        $sql$
            create temporary table united on commit drop as
            with contributed as (
                select d.area_key, d.contribution, s.id, s.name, s.attributes, s.point, coalesce(r.geom, s.geom) as geom
                from pg_temp.repeated d join %I s on s.id = d.id left join pg_temp.repaired r on r.id = s.id
                where d.occurrence = 1 and d.area_key in (
                    select area_key from pg_temp.repeated where occurrence = 1 and contribution > 1
                )
            ), attribute as (
                select c.area_key, jsonb_object_agg(e.key, e.value order by c.contribution desc) as united
                from contributed c cross join lateral jsonb_each(c.attributes) e group by c.area_key
            )
            select c.area_key, (array_agg(c.id order by c.contribution))[1] as id,
                (array_agg(c.name order by c.contribution) filter (where c.name is not null))[1] as name,
                (array_agg(c.point order by c.contribution) filter (where c.point is not null))[1] as point,
                (array_agg(c.geom order by c.contribution) filter (where c.geom is not null))[1] as geom,
                (array_agg(c.id order by c.contribution) filter (where c.geom is not null))[1] as boundary_id,
                coalesce(a.united, '{}') as attributes,
                count(c.geom) - 1 as boundaries_unused
            from contributed c left join attribute a on a.area_key = c.area_key
            group by c.area_key, a.united
        $sql$,
        staging
    );
    analyze pg_temp.united;
end
$$;

-- The staged rows that are not rejects, as a query: each adds to the area of its key, `first` makes it.
create or replace function contribution_query(staging text) returns text
language sql immutable set search_path from current as $$
    select format(
        $sql$
            select s.*, area_key(s.authority, s.area_type, s.code) as area_key, coalesce(r.geom, s.geom) as final,
                r.id is not null as repaired, r.reason, coalesce(d.contribution, 1) = 1 as first
            from %I s
            left join pg_temp.repaired r on r.id = s.id
            left join pg_temp.repeated d on d.id = s.id
            where (r.id is null or r.geom is not null) and coalesce(d.occurrence, 1) = 1
        $sql$,
        staging
    )
$$;
