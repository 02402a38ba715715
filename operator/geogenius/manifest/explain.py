"""What pydantic found, in words for the author of a manifest: the path of the field and what to do."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from geogenius.manifest import patterns
from geogenius.manifest.spelling import to_snake

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

ERRORS_SHOWN = 10


def explained(error: ValidationError, document: Mapping[str, object]) -> str:
    """One line `path: advice; path: advice`; missing fields are spelt as the document spells its keys."""
    snake = any("_" in key for key in _keys(document))
    details = error.errors(include_url=False)
    lines = [_line(detail, snake=snake) for detail in details[:ERRORS_SHOWN]]
    if len(details) > ERRORS_SHOWN:
        lines.append(f"and {len(details) - ERRORS_SHOWN} more errors")
    return "; ".join(lines)


def _keys(document: object) -> Iterator[str]:
    """The keys of the document outside of its options."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            if key != "options":
                yield str(key)
                yield from _keys(value)
    elif isinstance(document, Sequence) and not isinstance(document, str | bytes):
        for item in document:
            yield from _keys(item)


def _line(detail: "ErrorDetails", *, snake: bool) -> str:
    context: dict[str, Any] = detail.get("ctx", {})
    below: tuple[str | int, ...] = context.get("below", ())
    named = detail["type"] == "missing" or bool(below)
    loc = (*detail["loc"], *below)
    return f"{_path(loc, snake=snake) if named else _path(loc, snake=None)}: {_advice(detail, context)}"


def _path(loc: Sequence[str | int], *, snake: bool | None) -> str:
    """`sources[0].artifacts[1].sha256`; None keeps the keys as they were written."""
    path = ""
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            key = step if snake is None else to_snake(step) if snake else to_camel(step)
            path += f".{key}" if path else key
    return path or "manifest"


_TYPE_ADVICE = {
    "missing": "is required",
    "extra_forbidden": "is not a known field; check the spelling or remove it",
    "string_type": "must be a string; put the value in quotes",
    "int_type": "must be a whole number without quotes",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "date_from_datetime_parsing": "must be a day as YYYY-MM-DD",
    "date_from_datetime_inexact": "must be a day as YYYY-MM-DD",
    "date_type": "must be a day as YYYY-MM-DD",
    "date_parsing": "must be a day as YYYY-MM-DD",
    "too_short": "must not be empty",
    "too_long": "must not have more than {max_length} entries",
    "string_too_long": "must not be longer than {max_length} characters",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}


def _advice(detail: "ErrorDetails", context: Mapping[str, Any]) -> str:
    given = detail["input"]
    if detail["type"] == "string_pattern_mismatch":
        if isinstance(given, str) and not given.strip():
            return "must not be blank"
        return patterns.ADVICE.get(context["pattern"], detail["msg"])
    if detail["type"] in _TYPE_ADVICE:
        return _TYPE_ADVICE[detail["type"]].format_map(context)
    return detail["msg"][0].lower() + detail["msg"][1:]
