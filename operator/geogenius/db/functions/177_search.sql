-- Loads pg_trgm, so that a role without more rights may set its threshold on a function below.
do $$
begin
    perform show_limit();
end
$$;

-- A pattern for LIKE that begins with a text as it is: wildcards in it are taken literally.
create or replace function prefix_pattern(beginning text) returns text
language sql immutable parallel safe set search_path from current as $$
    select regexp_replace(beginning, '([\\%_])', '\\\1', 'g') || '%'
$$;

-- The areas with a name that begins with the query, whatever the case, or is like it (trigrams); the best first. The
-- score is the similarity of the best name. Wildcards are taken literally. `min_score`: how like a name must be, above
-- 0 to 1. Null asks for likeness of 0.6 and, only while nothing is found, for less: what is spelt right is found fast,
-- what is not is found too. Of a thousand and more names that begin with the query only the shortest, which are the
-- most like it, are weighed, unless there is no limit. Reads the trigram indexes of both tables of names. Sets a
-- parameter, so not for parallel workers.
-- Errors: 22004 null_argument; 22023 blank_query, bad_score, bad_limit; those of question_scope.
create or replace function search_areas(
    query text, collections text[] default null, types text[] default null,
    target_release uuid default null, include_retired boolean default false, result_limit integer default 50,
    min_score float8 default null
) returns setof area_match
language plpgsql stable parallel unsafe security definer set search_path from current
set pg_trgm.similarity_threshold = 0.6 as $$
declare
    best area_match[];
    threshold float8;
    asked jsonb := jsonb_build_object(
        'query', trim(query), 'prefix', prefix_pattern(trim(query)),
        'most', case when result_limit is not null then greatest(1000, result_limit) end
    );
begin
    perform check_query(query, min_score), check_limit(result_limit);
    foreach threshold in array case when min_score is null then array[0.6, 0.45, 0.3] else array[min_score] end loop
        perform set_config('pg_trgm.similarity_threshold', threshold::text, true);
        best := array(
            select m.match
            from question_scope(collections, types, target_release, include_retired) s
            cross join lateral matches_in(s, $hits$
                select 1, area_number, 'name', null::float8, null::float8, null::float8, null::float8,
                    max(similarity(name, $5 ->> 'query'))::float8, null::integer, null
                from (
                    (select area_number, name from {release_area} a
                    where a.name ilike $5 ->> 'prefix' and ($1 is null or a.area_type = any ($1))
                    order by length(a.name) limit ($5 ->> 'most')::bigint)
                    union all
                    (select area_number, name from {area_name} n
                    where n.name ilike $5 ->> 'prefix' and ($1 is null or exists (
                        select from {release_area} a where a.area_number = n.area_number and a.area_type = any ($1)
                    ))
                    order by length(n.name) limit ($5 ->> 'most')::bigint)
                    union all
                    select area_number, name from {release_area} a where a.name % ($5 ->> 'query')
                    union all
                    select area_number, name from {area_name} n where n.name % ($5 ->> 'query')
                ) named
                group by area_number
            $hits$, null, null, asked, result_limit) m
        );
        exit when cardinality(best) > 0;
    end loop;
    return query select m.* from unnest(best) m order by m.score desc, m.name, m.collection_key, m.area_key
        limit result_limit;
end
$$;
