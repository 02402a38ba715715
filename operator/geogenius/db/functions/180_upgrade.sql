-- Releases that 0.1 merged have two tables; questions, indexes and verification name all of them. Makes what is
-- missing, empty: standalone for a candidate, attached for a complete release.
-- Locks: those of attach_release_table, where something is missing.
do $$
declare
    old record;
begin
    for old in
        select r.id, r.completed_at, parent, c
        from release r join collection c on c.id = r.collection_id
        cross join unnest(release_parents()) with ordinality n (parent, place)
        where r.retired_at is null and to_regclass(release_table('release_area', r.id)) is not null
            and to_regclass(release_table(parent, r.id)) is null
        order by r.id, place
    loop
        perform create_release_table(old.parent, old.id, (old.c).key);
        if old.completed_at is not null then
            perform attach_release_table(old.parent, old.id, old.c);
        end if;
    end loop;
end
$$;
