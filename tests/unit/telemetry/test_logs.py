import json
import logging
from collections.abc import Iterator

import pytest

from geogenius.telemetry.logs import configure_logging

ABOUT = {"run_id": "11111111-2222-3333-4444-555555555555", "executor_id": "e"}


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    handlers, level = list(logging.root.handlers), logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def test_a_json_line_names_the_run_and_the_executor(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("INFO", "json")
    logging.getLogger("geogenius.importer").info("phase staging", extra=ABOUT)

    line = json.loads(capsys.readouterr().err)
    assert {name: line[name] for name in ABOUT} == ABOUT
    assert line["message"] == "phase staging"


def test_a_line_for_people_names_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("INFO", "text")
    logging.getLogger("geogenius.importer").info("phase staging", extra=ABOUT)
    logging.getLogger("geogenius.importer").info("nothing of a run")

    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(f"phase staging [run {ABOUT['run_id']}]")
    assert second.endswith("nothing of a run")
