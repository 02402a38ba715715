-- A run that a request asked for belongs to a cluster even where no Job carries it, but a queue.
alter table import_run
    drop constraint workload_whole,
    add constraint workload_whole check (
        num_nulls(workload_namespace, workload_name) in (0, 2) and (workload_name is null or cluster_id is not null)
    );
