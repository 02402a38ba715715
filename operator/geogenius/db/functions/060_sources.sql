-- The artifacts of a manifest, one row each, in its order. Reads nothing but its argument.
create or replace function manifest_artifact(wanted jsonb)
returns table (source jsonb, artifact jsonb, ordinal bigint)
language sql immutable as $$
    select s.value, a.value, row_number() over (order by s.ordinality, a.ordinality)
    from jsonb_array_elements(wanted -> 'sources') with ordinality s,
        jsonb_array_elements(s.value -> 'artifacts') with ordinality a
$$;

-- Whether the manifest defines a known source, vintage or file differently. A file may be corrected as long as
-- every run that selected it has failed. Locks: none (prepare_import holds the collection row).
create or replace function source_definition_changed(wanted jsonb) returns boolean
language plpgsql stable set search_path from current as $$
begin
    return exists (
        select
        from manifest_artifact(wanted) m
        join collection c on c.key = wanted ->> 'collection'
        join source s on s.collection_id = c.id and s.source_key = m.source ->> 'source_key'
        left join source_release v on v.source_id = s.id and v.release_key = m.source ->> 'release_key'
        left join artifact a on a.source_release_id = v.id and a.logical_name = m.artifact ->> 'logical_name'
        where (s.provider, s.license) is distinct from (m.source ->> 'provider', m.source ->> 'license')
            or v.id is not null and (v.source_date, v.attribution)
                is distinct from ((m.source ->> 'source_date')::date, m.source ->> 'attribution')
            or a.id is not null and (a.format, a.sha256, a.bytes, a.url) is distinct from (
                m.artifact ->> 'format', m.artifact ->> 'sha256', (m.artifact ->> 'bytes')::bigint, m.artifact ->> 'url'
            ) and exists (
                select from import_run_artifact u join import_run i on i.id = u.run_id
                where u.artifact_id = a.id and i.state <> 'failed'
            )
    );
end
$$;

-- Writes the sources, vintages and files of a manifest; corrects files as source_definition_changed permits.
-- Inserts in key order, so that two registrations wait for each other instead of deadlocking. Locks: the rows.
create or replace function register_sources(wanted jsonb, collection uuid) returns void
language plpgsql set search_path from current as $$
begin
    insert into source (collection_id, source_key, provider, license, created_at)
    select distinct collection, m.source ->> 'source_key', m.source ->> 'provider', m.source ->> 'license',
        catalog_now()
    from manifest_artifact(wanted) m order by 2
    on conflict do nothing;

    insert into source_release (source_id, release_key, source_date, attribution, created_at)
    select distinct s.id, m.source ->> 'release_key', (m.source ->> 'source_date')::date, m.source ->> 'attribution',
        catalog_now()
    from manifest_artifact(wanted) m
    join source s on s.collection_id = collection and s.source_key = m.source ->> 'source_key'
    order by 1, 2
    on conflict do nothing;

    insert into artifact (source_release_id, logical_name, format, sha256, bytes, url, created_at)
    select v.id, m.artifact ->> 'logical_name', m.artifact ->> 'format', m.artifact ->> 'sha256',
        (m.artifact ->> 'bytes')::bigint, m.artifact ->> 'url', catalog_now()
    from manifest_artifact(wanted) m
    join source s on s.collection_id = collection and s.source_key = m.source ->> 'source_key'
    join source_release v on v.source_id = s.id and v.release_key = m.source ->> 'release_key'
    order by 1, 2
    on conflict (source_release_id, logical_name) do update
    set format = excluded.format, sha256 = excluded.sha256, bytes = excluded.bytes, url = excluded.url
    where (artifact.format, artifact.sha256, artifact.bytes, artifact.url)
        is distinct from (excluded.format, excluded.sha256, excluded.bytes, excluded.url);
end
$$;

-- Selects the files of a run: registers what the manifest defines and keeps the definitions as they are now.
-- Locks: the rows (the caller holds the collection row).
create or replace function select_artifacts(run uuid, wanted jsonb) returns void
language plpgsql set search_path from current as $$
declare
    home uuid := (select id from collection where key = wanted ->> 'collection');
begin
    perform register_sources(wanted, home);
    insert into import_run_artifact (run_id, artifact_id, ordinal, format, sha256, bytes, url)
    select run, a.id, m.ordinal, a.format, a.sha256, a.bytes, a.url
    from manifest_artifact(wanted) m
    join source s on s.collection_id = home and s.source_key = m.source ->> 'source_key'
    join source_release v on v.source_id = s.id and v.release_key = m.source ->> 'release_key'
    join artifact a on a.source_release_id = v.id and a.logical_name = m.artifact ->> 'logical_name';
end
$$;
