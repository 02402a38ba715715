"""A one-node cluster of plain processes, in a network namespace of its own: no container engine, no registry."""
