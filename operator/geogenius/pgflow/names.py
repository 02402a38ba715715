"""What our part of pgflow is called. One catalog has one flow of one step; its queue has the flow's name."""

from geogenius.domain.errors import Misconfigured

STEP = "execute"

LONGEST_QUEUE_NAME = 47
"""Characters; pgmq puts prefixes before it and refuses longer names."""


def flow_slug(schema: str) -> str:
    """The flow of the catalog in `schema`, so that two catalogs of one database never take each other's runs.

    Raises Misconfigured where the schema's name is too long for a queue.
    """
    slug = f"{schema}_import"
    if len(slug) > LONGEST_QUEUE_NAME:
        room = LONGEST_QUEUE_NAME - len(slug) + len(schema)
        raise Misconfigured(f"the schema {schema!r} is too long for a queue: at most {room} characters")
    return slug
