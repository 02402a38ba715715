-- What a run must show at verification beyond soundness; gate_failures judges it.
alter table import_run
    add column gates jsonb not null default '{}',
    add constraint gates_known check (
        jsonb_typeof(gates) = 'object' and gates - array['minimum_areas', 'required_types', 'max_shrink_percent'] = '{}'
        and coalesce(jsonb_typeof(gates -> 'minimum_areas'), 'object') = 'object'
        and coalesce(jsonb_typeof(gates -> 'required_types'), 'array') = 'array'
        and coalesce((gates ->> 'max_shrink_percent')::numeric between 0 and 100, true)
    );
comment on column import_run.gates is
    'Optional gates of verification: minimum_areas {type: count}, required_types [type], max_shrink_percent 0 to 100.';
