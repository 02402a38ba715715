"""The two spellings of a key: camelCase as in Kubernetes, snake_case as in the catalog."""

import re


def to_snake(key: str) -> str:
    """`areaType` as `area_type`. anything that is no camelCase name stays as it is."""
    if not re.fullmatch(r"[a-z][A-Za-z0-9]*", key):
        return key
    return re.sub(r"[A-Z]", lambda letter: f"_{letter.group().lower()}", key)
