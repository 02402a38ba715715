-- How questions are put. Every question is asked of releases (question_scope), one dynamic query each (matches_in),
-- which names the tables of its release: planning takes the same time however many releases there are. Questions are
-- `security definer`, because readers have rights to the roots of these tables only.

-- The ranks of the area types of a release: {area_type: rank}.
create or replace view release_ranks as
select t.release_id, jsonb_object_agg(k.key, t.rank) as ranks
from release_area_type t join area_type k on k.id = t.area_type_id
group by t.release_id;

-- The releases that a question is put to: the published ones, or the one that is named. Null filters let all pass.
-- Each way of asking is a query of its own whose plan is kept: planning anew would cost as much as the question.
-- Errors: those of check_readable.
create or replace function question_scope(
    collections text[], types text[], target_release uuid, include_retired boolean
) returns setof question_scope
language plpgsql stable parallel safe rows 1 set search_path from current set plan_cache_mode = force_generic_plan as $$
declare
    retired_too boolean := coalesce(include_retired, false);
begin
    if target_release is not null then
        perform check_readable(target_release);
        return query
        select c.key, c.id, r.id, r.release_key, types, retired_too, k.ranks, r.filled
        from release r join collection c on c.id = r.collection_id left join release_ranks k on k.release_id = r.id
        where r.id = target_release and (collections is null or c.key = any (collections));
    elsif collections is null then
        return query
        select c.key, c.id, r.id, r.release_key, types, retired_too, k.ranks, r.filled
        from publication p join release r on r.id = p.release_id join collection c on c.id = p.collection_id
        left join release_ranks k on k.release_id = r.id;
    else
        return query
        select c.key, c.id, r.id, r.release_key, types, retired_too, (
            select k.ranks from release_ranks k where k.release_id = r.id
        ), r.filled
        from (select distinct unnest(collections)) a (asked) join collection c on c.key = a.asked
        join publication p on p.collection_id = c.id join release r on r.id = p.release_id;
    end if;
end
$$;

-- All codes of the area `a` in a query of matches_in, as an expression: no subquery where no area has further ones.
create or replace function codes_expression(s question_scope) returns text
language plpgsql immutable parallel safe set search_path from current as $$
begin
    return case when s.filled is null or 'area_code' = any (s.filled) then format(
        $sql$
            (select jsonb_object_agg(code_type, code_values) from (
                select code_type, jsonb_agg(distinct code_value) as code_values from (
                    select a.authority as code_type, a.code as code_value
                    union all
                    select x.code_type, x.code_value from %I x where x.area_number = a.area_number
                ) code group by code_type
            ) grouped)
        $sql$,
        release_table('area_code', s.release_id)
    ) else 'jsonb_build_object(a.authority, jsonb_build_array(a.code))' end;
end
$$;

-- The areas of one release that `hits` finds, whole, in the order of what was measured, the first `cut` of all.
-- `hits` is a query of our own files: columns seed, area_number, match_method, distance_m, intersection_area_m2,
-- coverage_of_input, coverage_of_area, score, depth, relation_type. In it, {table} is that table of this release; $3
-- and $4 are the geometries `place` and `zone`, $5 is `options`, $6 the types of the release. No caller's text reaches
-- the query. One statement, because plpgsql prepares each anew in every transaction. Compiling the query (jit) would
-- cost a hundred times what it takes.
create or replace function matches_in(
    s question_scope, hits text, place geometry, zone geometry, options jsonb, cut integer
) returns table (seed integer, match area_match)
language plpgsql stable parallel safe rows 10 set search_path from current set jit = off as $$
begin
    return query execute format(
        $sql$
            with hit (seed, area_number, match_method, distance_m, intersection_area_m2, coverage_of_input,
                coverage_of_area, score, depth, relation_type) as (%1$s)
            select h.seed, row(
                %3$L, %4$L::uuid, %5$L, a.area_key, a.authority, a.area_type, (%7$L::jsonb ->> a.area_type)::integer,
                a.code, a.name, %8$s, a.centroid, a.attributes, z.retired_at, z.successor_key, h.match_method,
                h.distance_m, h.intersection_area_m2, h.coverage_of_input, h.coverage_of_area, h.score, h.depth,
                h.relation_type
            )::area_match
            from hit h
            join release_area_%2$s a on a.area_number = h.area_number
            left join area_retirement z on z.collection_id = %6$L::uuid and z.area_key = a.area_key
            where ($1 is null or a.area_type = any ($1)) and ($2 or z.area_key is null)
            order by h.seed, h.distance_m, h.score desc, h.intersection_area_m2 desc, h.depth,
                case when h.score is null then (%7$L::jsonb ->> a.area_type)::integer end,
                case when h.score is not null then a.name end, a.area_key
            limit $7
        $sql$,
        regexp_replace(hits, '\{([a-z_]+)\}', '\1_' || replace(s.release_id::text, '-', ''), 'g'),
        replace(s.release_id::text, '-', ''), s.collection_key, s.release_id, s.release_key, s.collection_id, s.ranks,
        codes_expression(s)
    ) using s.types, s.include_retired, place, zone, options, array(select jsonb_object_keys(s.ranks)), cut;
end
$$;
