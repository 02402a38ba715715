"""The queue of pgflow, on plain PostgreSQL: the only code that speaks with the schemas pgflow and pgmq."""
