import pytest

from geogenius.importer.text import SHOWN_CHARACTERS, shortened


def nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", ["x" * 1000, b"\xff" * 1000, nested(500), nested(100_000), {"k": "v" * 1000}, 10**100]
)
def test_any_value_is_shown_in_a_few_characters(value: object) -> None:
    assert 0 < len(shortened(value)) <= SHOWN_CHARACTERS
