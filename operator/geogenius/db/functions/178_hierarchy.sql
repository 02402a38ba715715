-- Areas below (down) or above some areas, up to `max_depth` steps, each once for each seed at its least depth: a dense
-- graph costs areas times depth, not paths. `classifications` are the relation types to walk along; null walks all.
-- Reads the indexes of relation by parent and by child.
-- Errors: 22004 null_argument; 22023 bad_depth; those of question_scope.
create or replace function walk_many(
    area_keys text[], down boolean, types text[], classifications text[], max_depth integer, collections text[],
    target_release uuid, include_retired boolean
) returns table (seed integer, match area_match)
language plpgsql stable parallel safe security definer set search_path from current as $$
begin
    perform check_list('area_keys', area_keys), check_depth(max_depth);
    return query
    select m.seed, m.match
    from question_scope(collections, types, target_release, include_retired) s
    cross join lateral matches_in(s, replace(replace($hits$
        with recursive walk (seed, area_number, depth, relation_type) as (
            select x.n::integer, a.area_number, 0, null::text
            from jsonb_array_elements_text($5 -> 'keys') with ordinality x (key, n)
            join {release_area} a on a.area_key = x.key
            union
            select w.seed, r.{to}, w.depth + 1, r.relation_type
            from walk w join {relation} r on r.{from} = w.area_number
            where w.depth < ($5 ->> 'depth')::integer
                and ($5 -> 'classes' = 'null' or $5 -> 'classes' ? r.relation_type)
        )
        select distinct on (w.seed, w.area_number) w.seed, w.area_number, 'relation', null::float8, null::float8,
            null::float8, null::float8, null::float8, w.depth, w.relation_type
        from walk w
        where w.depth > 0
            and not exists (select from walk o where o.seed = w.seed and o.area_number = w.area_number and o.depth = 0)
        order by w.seed, w.area_number, w.depth, w.relation_type
    $hits$, '{from}', case when down then 'parent_number' else 'child_number' end),
        '{to}', case when down then 'child_number' else 'parent_number' end),
    null, null, jsonb_build_object('keys', area_keys, 'depth', max_depth, 'classes', classifications), null) m
    order by m.seed, (m.match).depth, (m.match).collection_key, (m.match).type_rank, (m.match).area_key;
end
$$;

create or replace function children_of_many(
    area_keys text[], types text[] default null, classifications text[] default null, max_depth integer default 1,
    collections text[] default null, target_release uuid default null, include_retired boolean default false
) returns table (seed integer, match area_match)
language sql stable parallel safe set search_path from current as $$
    select * from walk_many(area_keys, true, types, classifications, max_depth, collections, target_release,
        include_retired)
$$;

create or replace function children_of(
    area_key text, types text[] default null, classifications text[] default null, max_depth integer default 1,
    collections text[] default null, target_release uuid default null, include_retired boolean default false
) returns setof area_match
language sql stable parallel safe set search_path from current as $$
    select (m.match).* from walk_many(array[area_key], true, types, classifications, max_depth, collections,
        target_release, include_retired) m
$$;

create or replace function ancestors_of_many(
    area_keys text[], types text[] default null, classifications text[] default null, max_depth integer default 1,
    collections text[] default null, target_release uuid default null, include_retired boolean default false
) returns table (seed integer, match area_match)
language sql stable parallel safe set search_path from current as $$
    select * from walk_many(area_keys, false, types, classifications, max_depth, collections, target_release,
        include_retired)
$$;

create or replace function ancestors_of(
    area_key text, types text[] default null, classifications text[] default null, max_depth integer default 1,
    collections text[] default null, target_release uuid default null, include_retired boolean default false
) returns setof area_match
language sql stable parallel safe set search_path from current as $$
    select (m.match).* from walk_many(array[area_key], false, types, classifications, max_depth, collections,
        target_release, include_retired) m
$$;

-- Areas one step away in either direction. The measures are those of the relation, in per cent of the seed
-- (coverage_of_input) and of the area found (coverage_of_area); depth is 1 below and -1 above.
-- Errors: 22004 null_argument; those of question_scope.
create or replace function related_areas_many(
    area_keys text[], classifications text[] default null, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false
) returns table (seed integer, match area_match)
language plpgsql stable parallel safe security definer set search_path from current as $$
begin
    perform check_list('area_keys', area_keys);
    return query
    select m.seed, m.match
    from question_scope(collections, types, target_release, include_retired) s
    cross join lateral matches_in(s, $hits$
        select n.seed, n.area_number, 'relation', null::float8, n.shared, 100 * n.of_seed, 100 * n.of_area,
            null::float8, n.step, n.relation_type
        from (
            select x.n::integer as seed, e.*
            from jsonb_array_elements_text($5 -> 'keys') with ordinality x (key, n)
            join {release_area} a on a.area_key = x.key
            join lateral (
                select r.child_number, r.relation_type, r.intersection_area_m2, r.parent_coverage, r.child_coverage, 1
                from {relation} r where r.parent_number = a.area_number
                union all
                select r.parent_number, r.relation_type, r.intersection_area_m2, r.child_coverage, r.parent_coverage, -1
                from {relation} r where r.child_number = a.area_number
            ) e (area_number, relation_type, shared, of_seed, of_area, step) on true
            where $5 -> 'classes' = 'null' or $5 -> 'classes' ? e.relation_type
        ) n
    $hits$, null, null, jsonb_build_object('keys', area_keys, 'classes', classifications), null) m
    order by m.seed, (m.match).depth, (m.match).collection_key, (m.match).type_rank, (m.match).area_key;
end
$$;

create or replace function related_areas(
    area_key text, classifications text[] default null, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false
) returns setof area_match
language sql stable parallel safe set search_path from current as $$
    select (m.match).* from related_areas_many(array[area_key], classifications, collections, types, target_release,
        include_retired) m
$$;
