"""Use cases: the only place where the catalog and the runners meet."""
