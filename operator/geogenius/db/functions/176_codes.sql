-- The areas that have a code, for each of several pairs (code type, value), in their order. The own code of an area is
-- found under its authority. With a parent, only areas up to `parent_max_depth` steps below it.
-- Reads the unique index of area_key and the index of area_code.
-- Errors: 22004 null_argument; 22023 bad_lists, bad_depth; those of question_scope.
create or replace function areas_by_code_many(
    code_types text[], code_values text[], collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false,
    parent_area_key text default null, parent_max_depth integer default 1
) returns table (seed integer, match area_match)
language plpgsql stable parallel safe security definer set search_path from current as $$
begin
    perform check_list('code_types', code_types), check_list('code_values', code_values),
        check_lengths(code_types, code_values), check_depth(parent_max_depth);
    return query
    select m.seed, m.match
    from question_scope(collections, types, target_release, include_retired) s
    cross join lateral matches_in(s, $hits$
        with recursive seed as (
            select n::integer as seed, t as code_type, $5 -> 'values' ->> (n::integer - 1) as code_value
            from jsonb_array_elements_text($5 -> 'types') with ordinality x (t, n)
        ), below (area_number, depth) as (
            select p.area_number, 0 from {release_area} p where p.area_key = $5 ->> 'parent'
            union
            select r.child_number, w.depth + 1 from below w join {relation} r on r.parent_number = w.area_number
            where w.depth < ($5 ->> 'depth')::integer
        )
        select f.seed, f.area_number, 'code', null::float8, null::float8, null::float8, null::float8, null::float8,
            null::integer, null
        from (
            select x.seed, a.area_number
            from seed x cross join unnest($6) k
            join {release_area} a
                on a.area_key = area_key(x.code_type, k, x.code_value) and a.authority = x.code_type
            union
            select x.seed, c.area_number
            from seed x join {area_code} c on c.code_type = x.code_type and c.code_value = x.code_value
        ) f
        where $5 ->> 'parent' is null or f.area_number in (
            select b.area_number from below b group by b.area_number having min(b.depth) > 0 -- no cycles
        )
    $hits$, null, null, jsonb_build_object(
        'types', code_types, 'values', code_values, 'parent', parent_area_key, 'depth', parent_max_depth
    ), null) m
    order by m.seed, (m.match).collection_key, (m.match).type_rank, (m.match).area_key;
end
$$;

create or replace function areas_by_code(
    code_type text, code_value text, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false,
    parent_area_key text default null, parent_max_depth integer default 1
) returns setof area_match
language sql stable parallel safe set search_path from current as $$
    select (m.match).* from areas_by_code_many(array[code_type], array[code_value], collections, types, target_release,
        include_retired, parent_area_key, parent_max_depth) m
$$;
