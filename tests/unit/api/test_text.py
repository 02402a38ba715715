"""Text from elsewhere in a status."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geogenius.api.text import message_of, reason_of


@given(st.text(max_size=3000))
def test_a_message_is_one_bounded_line(text: str) -> None:
    message = message_of(text)

    assert len(json.dumps(message, ensure_ascii=False).encode()) <= 1024 + 2
    assert message == " ".join(message.split())
    assert message_of(message) == message


def test_a_short_message_stays_as_it_is() -> None:
    assert message_of('row 7 of "länder.geojson": no code') == 'row 7 of "länder.geojson": no code'


def test_lines_become_one() -> None:
    assert message_of("first\n\tsecond\x00third ") == "first second third"


def test_a_long_message_ends_with_an_ellipsis() -> None:
    assert message_of("x" * 2000) == "x" * 1021 + "…"


@pytest.mark.parametrize("word", ["OOMKilled", "ErrImagePull", "A", "Waiting_1"])
def test_a_word_is_kept_as_reason(word: str) -> None:
    assert reason_of(word, "Failed") == word


@pytest.mark.parametrize("word", ["", "two words", "1st", "trailing:", "Über", "x" * 129, "line\n"])
def test_what_is_no_word_is_replaced(word: str) -> None:
    assert reason_of(word, "Failed") == "Failed"
