"""Processes: the children that execute runs, and how our own programs end."""
