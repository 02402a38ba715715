-- The release that readers of a collection see; null for an unknown collection or one without.
create or replace function published_release(wanted text) returns uuid
language sql stable parallel safe set search_path from current as $$
    select p.release_id from publication p join collection c on c.id = p.collection_id where c.key = wanted
$$;

-- Every move of a pointer, numbered in the order of commits: a reader that has seen a number has seen all below it.
create or replace view publication_history as
select e.sequence, c.key as collection_key, e.kind, r.release_key, e.release_id, e.previous_release_id, e.occurred_at
from publication_event e
join collection c on c.id = e.collection_id
join release r on r.id = e.release_id;

-- The release that readers of a collection saw at a moment; null for an unknown collection, or before the first
-- publication. Its tables may be gone meanwhile: see release_status. Reads publication_event_of_collection.
create or replace function release_at(wanted text, moment timestamptz) returns uuid
language sql stable parallel safe set search_path from current as $$
    select h.release_id from publication_history h
    where h.collection_key = wanted and h.occurred_at <= moment
    order by h.sequence desc limit 1
$$;

-- The pointer of a collection, read when no move of it is in flight: what a caller asks whose reply was lost. No row
-- for an unknown collection or one without a published release.
-- Locks: publication.
create or replace function settled_publication(wanted text)
returns table (
    collection_key text, release_id uuid, release_key text, previous_release_id uuid, published_at timestamptz,
    moved boolean
)
language plpgsql security definer set search_path from current as $$
begin
    perform lock_publication(wanted);
    return query select a.* from publication_answer(wanted, false) a;
end
$$;
