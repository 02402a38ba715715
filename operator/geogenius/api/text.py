"""Text from elsewhere made fit for a status: one line, bounded, words where words are asked for."""

import json
import re

from geogenius.api.names import REASON_PATTERN
from geogenius.api.v1alpha1 import MESSAGE_LENGTH

REASON_LENGTH = 128
ELLIPSIS = "…"

_REASON = re.compile(REASON_PATTERN)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def message_of(text: str) -> str:
    """The text on one line, cut to what a condition holds; its JSON is no longer than that in bytes either."""
    line = " ".join(_UNPRINTABLE.sub(" ", text).split())
    if _size(line) <= MESSAGE_LENGTH:
        return line
    kept, size = [], _size(ELLIPSIS)
    for character in line:
        size += _size(character)
        if size > MESSAGE_LENGTH:
            break
        kept.append(character)
    return "".join(kept).rstrip() + ELLIPSIS


def reason_of(word: str, otherwise: str) -> str:
    """The word, if it can be the reason of a condition."""
    return word if len(word) <= REASON_LENGTH and _REASON.fullmatch(word) else otherwise


def _size(text: str) -> int:
    """Bytes of the text inside a JSON string."""
    return len(json.dumps(text, ensure_ascii=False).encode()) - 2
