-- Areas that are no more, and the history of the pointer.

create table area_retirement (
    collection_id uuid not null references collection,
    area_key text collate "C" not null check (area_key <> ''),
    retired_at timestamptz not null,
    successor_key text collate "C" check (successor_key <> '' and successor_key <> area_key),
    primary key (collection_id, area_key)
);
comment on table area_retirement is
    'Areas that no longer exist, whatever releases say of them, and who took their place. It alone spans releases.';

-- The pointer leads to releases of its own collection: a key proves it.
alter table release add unique (collection_id, id);
alter table publication
    add foreign key (collection_id, release_id) references release (collection_id, id),
    add foreign key (collection_id, previous_release_id) references release (collection_id, id);
alter table publication_event
    add foreign key (collection_id, release_id) references release (collection_id, id),
    add foreign key (collection_id, previous_release_id) references release (collection_id, id);
create index publication_event_of_collection on publication_event (collection_id, sequence desc);
create index publication_previous on publication (previous_release_id);
create index publication_event_previous on publication_event (previous_release_id);
