"""Values from files, made fit for messages and for PostgreSQL."""

import re

SHOWN_CHARACTERS = 64
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def shortened(value: object) -> str:
    """A value as shown in a message: quoted, and never more than 64 characters of it."""
    if isinstance(value, bytes):
        value = value[: SHOWN_CHARACTERS + 1].decode(errors="replace")
    try:
        shown = repr(value[: SHOWN_CHARACTERS + 1] if isinstance(value, str) else value)
    except RecursionError:
        shown = f"a deeply nested {type(value).__name__}"
    return shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[: SHOWN_CHARACTERS - 3]}..."


def storable(text: str) -> bool:
    """Whether PostgreSQL can keep this text: no NUL character, no half of a surrogate pair."""
    return not UNSTORABLE.search(text)
