-- What `pgflow install` made in this database, so that `pgflow uninstall` takes away that and nothing else.
create table queue_component (
    component text not null check (component in ('pgmq', 'realtime', 'pgflow', 'flow')),
    script text not null check (script <> ''),
    origin text not null,
    version text not null,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    applied_at timestamptz not null,
    primary key (component, script)
);
comment on table queue_component is 'Scripts that made parts of the queue; what is not listed was made by others.';
