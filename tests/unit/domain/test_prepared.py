"""The reasons of refusals in Python and in SQL are the same closed sets."""

import re
from pathlib import Path

import pytest

import geogenius
from geogenius.domain.prepared import PREPARE_REFUSALS, RETRY_REFUSALS, Refusal

FUNCTIONS = Path(geogenius.__file__).parent / "db" / "functions"


@pytest.mark.parametrize(
    ("file", "refusals"), [("050_prepare.sql", PREPARE_REFUSALS), ("075_retry.sql", RETRY_REFUSALS)]
)
def test_every_reason_that_sql_gives_is_known_and_no_other(file: str, refusals: frozenset[Refusal]) -> None:
    text = (FUNCTIONS / file).read_text()
    assert reasons(text) == {str(refusal) for refusal in refusals}


def test_every_reason_belongs_to_a_function() -> None:
    assert set(Refusal) == PREPARE_REFUSALS | RETRY_REFUSALS


def reasons(text: str) -> set[str]:
    """What the judge decides to be an error, and what the function itself refuses."""
    judged = re.search(r"answer\.reason := case\b(.*?)\n    end;", text, re.DOTALL)
    decided = re.search(r"answer\.decision := case answer\.reason\s+(.*?) else 'error' end;", text, re.DOTALL)
    assert judged is not None
    assert decided is not None
    said = set(re.findall(r"\b(?:then|else) '(\w+)'", judged[1])) | set(re.findall(r"row\('error', '(\w+)'", text))
    return said - set(re.findall(r"when '(\w+)'", decided[1]))
