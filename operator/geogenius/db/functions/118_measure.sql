-- Intersects the boundaries of areas whose types differ in rank: the lower rank is the parent. Areas are cut in degrees
-- and measured on the ellipsoid; those that only touch do not count. A child that lies wholly in a piece of its parent
-- is not cut. Asserted edges stay as they are. Gives the number of edges.
-- Locks: the tables.
create or replace function measure_relations(release uuid, collection_key text) returns bigint
language plpgsql set search_path from current as $$
declare
    edges bigint;
begin
    if (select count(*) < 2 from release_area_type t where t.release_id = release) then
        return 0;
    end if;
    perform index_release_table('boundary', release, 'geom', 'using gist (geom)');
    perform index_release_table('boundary_part', release, 'geom', 'using gist (geom)');
    drop table if exists pg_temp.surface;
    execute format(
        $sql$
            create temporary table surface on commit drop as
            select a.area_number, t.rank, ST_Area(ST_Segmentize(b.geom, 0.25)::geography) as m2
            from %I a
            join %I b on b.area_number = a.area_number
            join area_type k on k.key = a.area_type
            join release_area_type t on t.area_type_id = k.id and t.release_id = $1
        $sql$,
        release_table('release_area', release), release_table('boundary', release)
    ) using release;
    analyze pg_temp.surface;
    execute format(
        $sql$
            insert into %1$I
            select $1, $2, m.parent, m.child,
                case when m.shared >= 0.999 * m.child_m2 then 'contains'
                    when m.shared >= 0.5 * m.child_m2 then 'mostly_contains' else 'overlaps' end,
                m.shared, least(1, m.shared / nullif(m.parent_m2, 0)), least(1, m.shared / nullif(m.child_m2, 0))
            from (
                select p.area_number as parent, c.area_number as child, p.m2 as parent_m2, c.m2 as child_m2, sum(
                    case when ST_Covers(g.geom, b.geom) then c.m2
                        else ST_Area(ST_Segmentize(ST_Intersection(g.geom, b.geom), 0.25)::geography) end
                ) as shared
                from pg_temp.surface c
                join %2$I b on b.area_number = c.area_number
                cross join lateral (
                    select w.area_number, w.geom from %2$I w where not w.divided and w.geom && b.geom
                    union all
                    select w.area_number, w.geom from %3$I w where w.geom && b.geom
                ) g
                join pg_temp.surface p on p.area_number = g.area_number and p.rank < c.rank -- before the dear question
                where ST_Intersects(g.geom, b.geom)
                group by p.area_number, c.area_number, p.m2, c.m2
            ) m
            where m.shared > 0 and m.parent_m2 > 0 and m.child_m2 > 0 and not exists (
                select from %1$I x where x.parent_number = m.parent and x.child_number = m.child
            )
        $sql$,
        release_table('relation', release), release_table('boundary', release), release_table('boundary_part', release)
    ) using collection_key, release;
    get diagnostics edges = row_count;
    return edges;
end
$$;
