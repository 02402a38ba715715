-- What questions answer with, and what they are asked of: said once for all functions that read.

create type area_match as (
    collection_key text, release_id uuid, release_key text,
    area_key text, authority text, area_type text, type_rank integer, code text, name text, codes jsonb,
    centroid geography(Point, 4326), attributes jsonb, retired_at timestamptz, successor_key text,
    match_method text, distance_m double precision, intersection_area_m2 double precision,
    coverage_of_input double precision, coverage_of_area double precision, score double precision,
    depth integer, relation_type text
);
comment on type area_match is 'An area that answers a question. Measures that the question does not make are null.';
comment on column area_match.codes is 'All codes: {code_type: [values]}; the own code under its authority.';
comment on column area_match.coverage_of_input is 'Per cent of the asked polygon that lies in the area.';
comment on column area_match.coverage_of_area is 'Per cent of the area that lies in the asked polygon.';
comment on column area_match.score is 'Similarity of the best name, 0 to 1.';
comment on column area_match.relation_type is 'Of the last step of the shortest way.';

create type question_scope as (
    collection_key text, collection_id uuid, release_id uuid, release_key text,
    types text[], include_retired boolean, ranks jsonb, filled text[]
);
comment on type question_scope is 'One release that a question is put to, and which of its areas count.';
comment on column question_scope.ranks is '{area_type: rank} of the release.';
