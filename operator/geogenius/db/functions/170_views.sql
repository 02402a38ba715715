-- What readers see. collection_key is the partition key itself and comes first: `where collection_key = 'us'` prunes
-- while planning, however many collections and releases there are. release_* show every complete release that is not
-- retired; published_* show the same columns of the one that the pointer names. A release id alone joins the tables:
-- the fewer tables, the faster a question is planned.

create or replace view release_areas as
select
    a.collection_key, a.release_id, r.release_key, a.area_key, a.authority, a.area_type, t.rank as type_rank,
    a.code, a.name, a.centroid, a.attributes, z.retired_at, z.successor_key
from release r
join release_area a on a.release_id = r.id
join area_type k on k.collection_id = r.collection_id and k.key = a.area_type
join release_area_type t on t.release_id = r.id and t.area_type_id = k.id
left join area_retirement z on z.collection_id = r.collection_id and z.area_key = a.area_key
where r.completed_at is not null and r.retired_at is null;

create or replace view release_boundaries as
select b.collection_key, b.release_id, r.release_key, a.area_key, b.geom, b.repaired, b.repair_reason
from release r
join boundary b on b.release_id = r.id
join release_area a on a.collection_key = b.collection_key and a.release_id = r.id and a.area_number = b.area_number
where r.completed_at is not null and r.retired_at is null;

-- The official name, and the further ones: two joins, because a subquery for each area would keep the literal
-- collection from pruning area_name.
create or replace view release_area_names as
select a.collection_key, a.release_id, r.release_key, a.area_key, a.name, 'official' as kind, null as locale
from release r
join release_area a on a.release_id = r.id
where a.name is not null and r.completed_at is not null and r.retired_at is null
union all
select a.collection_key, a.release_id, r.release_key, a.area_key, x.name, x.kind, x.locale
from release r
join release_area a on a.release_id = r.id
join area_name x on x.collection_key = a.collection_key and x.release_id = r.id and x.area_number = a.area_number
where r.completed_at is not null and r.retired_at is null;

-- The own code under its authority, and the further ones under their types.
create or replace view release_area_codes as
select a.collection_key, a.release_id, r.release_key, a.area_key, a.authority as code_type, a.code as code_value
from release r
join release_area a on a.release_id = r.id
where r.completed_at is not null and r.retired_at is null
union all
select a.collection_key, a.release_id, r.release_key, a.area_key, x.code_type, x.code_value
from release r
join release_area a on a.release_id = r.id
join area_code x on x.collection_key = a.collection_key and x.release_id = r.id and x.area_number = a.area_number
where r.completed_at is not null and r.retired_at is null;

create or replace view release_relations as
select
    x.collection_key, x.release_id, r.release_key, p.area_key as parent_area_key, a.area_key as child_area_key,
    x.relation_type, x.intersection_area_m2, x.parent_coverage, x.child_coverage
from release r
join relation x on x.release_id = r.id
join release_area p on p.collection_key = x.collection_key and p.release_id = r.id and p.area_number = x.parent_number
join release_area a on a.collection_key = x.collection_key and a.release_id = r.id and a.area_number = x.child_number
where r.completed_at is not null and r.retired_at is null;

create or replace view published_areas as
select v.* from publication p join release_areas v on v.release_id = p.release_id;

-- The most asked of all: the pointer proves that the release is complete, and its key is looked up where it is wanted.
create or replace view published_boundaries as
select
    b.collection_key, b.release_id, (select r.release_key from release r where r.id = b.release_id) as release_key,
    a.area_key, b.geom, b.repaired, b.repair_reason
from publication p
join boundary b on b.release_id = p.release_id
join release_area a
    on a.collection_key = b.collection_key and a.release_id = p.release_id and a.area_number = b.area_number;

create or replace view published_area_names as
select v.* from publication p join release_area_names v on v.release_id = p.release_id;

create or replace view published_area_codes as
select v.* from publication p join release_area_codes v on v.release_id = p.release_id;

create or replace view published_relations as
select v.* from publication p join release_relations v on v.release_id = p.release_id;
