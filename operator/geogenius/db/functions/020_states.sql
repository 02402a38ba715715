-- The single next phase of each working state. Ends are not phases: complete_import, publish_import and
-- fail_import make them. domain/run.py and docs/state-machine.md say the same; a test compares the three.
create or replace view run_state_edge (state, next_state) as
values
    ('pending'::run_state, 'downloading'::run_state),
    ('downloading', 'validating'),
    ('validating', 'staging'),
    ('staging', 'normalizing'),
    ('normalizing', 'relating'),
    ('relating', 'indexing'),
    ('indexing', 'verifying'),
    ('verifying', 'publishing');
