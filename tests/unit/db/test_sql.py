from pathlib import Path

import pytest

from geogenius.db.sql import QueryFileError, load_queries


def loaded(folder: Path, text: str) -> dict[str, str]:
    file = folder / "some.sql"
    file.write_text(text)
    return dict(load_queries(file))


def test_a_block_is_found_by_its_name_without_its_comment(tmp_path: Path) -> None:
    one = "-- name: get_one (one)\n-- Gives one.\nselect 1\n\n"
    many = "-- name: get_many (many)\n-- Gives two.\nselect 1\nunion all\nselect 2\n"
    assert loaded(tmp_path, one + many) == {"get_one": "select 1", "get_many": "select 1\nunion all\nselect 2"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("select 1\n", "not the head of a named query"),
        ("-- name: (one)\n-- Gives.\nselect 1\n", "not the head of a named query"),
        ("-- name: get_one\n-- Gives.\nselect 1\n", "not the head of a named query"),
        ("-- name: get_one (one)\nselect 1\n", "get_one has no description"),
        (
            "-- name: get_one (one)\n-- A.\nselect 1\n-- name: get_one (one)\n-- B.\nselect 2\n",
            "get_one is there twice",
        ),
    ],
    ids=["nameless", "blank name", "no number of rows", "undescribed", "twice"],
)
def test_a_block_that_breaks_the_form_is_refused_by_name(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(QueryFileError, match=complaint):
        loaded(tmp_path, text)
