"""The nursery: the process that forks executors for a host; `python -m geogenius.nursery FD`."""
