"""The ImportRequest resource: its shape, what is read from it, and the status that mirrors the catalog."""
