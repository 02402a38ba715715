"""The check of generated files sees what is wrong, and says it as a diff."""

from pathlib import Path

import pytest

from tests.support.generated import SAMPLE, SAMPLE_FILE, Generated, main, sample_problems, verify, write


@pytest.fixture
def file(tmp_path: Path) -> Generated:
    return Generated(tmp_path / "new" / "file.yaml", lambda: "a: 1\nb: 2\n")


def test_a_missing_file_is_written_and_then_up_to_date(file: Generated) -> None:
    assert verify([file]) == 1

    write([file])

    assert file.path.read_text() == "a: 1\nb: 2\n"
    assert verify([file]) == 0


def test_a_file_that_is_up_to_date_is_not_touched(file: Generated, capsys: pytest.CaptureFixture[str]) -> None:
    write([file])
    before = file.path.stat().st_mtime_ns
    capsys.readouterr()

    write([file])

    assert file.path.stat().st_mtime_ns == before
    assert capsys.readouterr().out == ""


def test_a_file_edited_by_hand_is_shown_as_a_diff(file: Generated, capsys: pytest.CaptureFixture[str]) -> None:
    file.path.parent.mkdir()
    file.path.write_text("a: 1\nb: 3\n")

    assert verify([file]) == 1
    printed = capsys.readouterr()
    assert "-b: 3\n+b: 2\n" in printed.out
    assert "make generate" in printed.err


def test_the_sample_agrees_with_its_file() -> None:
    assert sample_problems(SAMPLE.read_text(), SAMPLE_FILE.read_bytes()) == []


def test_a_sample_about_another_file_names_what_differs() -> None:
    problems = sample_problems(SAMPLE.read_text(), b"other")

    assert [problem.split()[0] for problem in problems] == ["sha256", "bytes"]


@pytest.mark.parametrize("arguments", [[], ["both"], ["write", "verify"]], ids=str)
def test_anything_but_one_known_word_is_a_usage_error(arguments: list[str]) -> None:
    assert main(arguments) == 64
