-- Which strategies of resolve have what they need in its input; refuses what it cannot understand.
-- Errors: 22023 bad_resolve_input, bad_strategy.
create or replace function usable_strategies(input jsonb, strategies text[]) returns text[]
language plpgsql stable parallel safe set search_path from current as $$
declare
    wanted text[] := coalesce(strategies, array['containment', 'code', 'name', 'proximity']);
    strange text;
    usable text[];
begin
    if coalesce(jsonb_typeof(input) <> 'object', true) then
        perform refuse('22023', 'bad_resolve_input', 'an input is an object');
    end if;
    strange := (
        select string_agg(k, ', ' order by k) from jsonb_object_keys(input) k where not k = any (array[
            'lon', 'lat', 'radius_m', 'code_type', 'code_value', 'name', 'parent_area_key'
        ])
    );
    if strange is not null then
        perform refuse('22023', 'bad_resolve_input', format('an input does not have %s', strange));
    elsif (input ? 'lon') <> (input ? 'lat') or (input ? 'code_type') <> (input ? 'code_value') then
        perform refuse('22023', 'bad_resolve_input', 'lon goes with lat, and code_type with code_value');
    elsif exists (
        select from jsonb_each(input) i where jsonb_typeof(i.value)
            <> case when i.key in ('lon', 'lat', 'radius_m') then 'number' else 'string' end
    ) then
        perform refuse('22023', 'bad_resolve_input', 'lon, lat and radius_m are numbers, the others texts');
    elsif exists (
        select from unnest(wanted) w where coalesce(w not in ('containment', 'code', 'name', 'proximity'), true)
    ) then
        perform refuse('22023', 'bad_strategy', 'strategies are containment, code, name and proximity');
    end if;
    usable := array(
        select w from unnest(wanted) with ordinality x (w, n)
        where input ? case w when 'code' then 'code_type' when 'name' then 'name' else 'lon' end order by n
    );
    if usable = '{}' then
        perform refuse('22023', 'bad_resolve_input', 'give lon and lat, or code_type and code_value, or name');
    end if;
    return usable;
end
$$;

-- The areas that some input means: strategies are tried in order and the first one that finds anything answers.
-- input: lon, lat, radius_m (25000), code_type, code_value, name, parent_area_key (codes and names one step below it).
-- Errors: 22023 bad_resolve_input, bad_strategy; those of the questions asked.
create or replace function resolve(
    input jsonb, collections text[] default null, types text[] default null, strategies text[] default null,
    target_release uuid default null, include_retired boolean default false
) returns setof area_match
language plpgsql stable parallel unsafe set search_path from current as $$
declare
    usable text[] := usable_strategies(input, strategies); -- first: what follows takes the input at its word
    strategy text;
    parent text := input ->> 'parent_area_key';
    lon float8 := input ->> 'lon';
    lat float8 := input ->> 'lat';
begin
    foreach strategy in array usable loop
        case strategy
            when 'containment' then
                return query select * from areas_for_point(lon, lat, collections, types, target_release,
                    include_retired);
            when 'code' then
                return query select * from areas_by_code(input ->> 'code_type', input ->> 'code_value', collections,
                    types, target_release, include_retired, parent, 1);
            when 'name' then
                return query select f.* from search_areas(input ->> 'name', collections, types, target_release,
                    include_retired, case when parent is null then 25 else 10000 end,
                    case when parent is not null then 0.3 end) f
                where parent is null or (f.release_id, f.area_key) in (
                    select b.release_id, b.area_key from children_of(parent, types, null, 1, collections,
                        target_release, include_retired) b
                ) limit 25;
            else
                return query select * from areas_near(lon, lat, coalesce((input ->> 'radius_m')::float8, 25000),
                    collections, types, target_release, include_retired);
        end case;
        if found then
            return;
        end if;
    end loop;
end
$$;
