"""The worker: executes the runs of the queue in child processes, until it is asked to stop."""
