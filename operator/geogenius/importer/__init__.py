"""Executes a run: obtains its files, reads areas out of them and fills the catalog, phase by phase."""
