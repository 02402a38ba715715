"""The table of runners and cases, from what the suite has just found."""

import pytest

from geogenius.testing import RunnerContract
from tests.support.matrix import write_evidence

CASES = [name for name in vars(RunnerContract) if name.startswith("test_")]


class Outcomes:
    """How each case ended for each runner."""

    def __init__(self) -> None:
        self._passed: dict[str, dict[str, bool]] = {}

    def note(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Keep the end of one step of a test; a test has passed when all its steps have."""
        if not isinstance(item, pytest.Function) or item.cls is None or not issubclass(item.cls, RunnerContract):
            return
        of_runner = self._passed.setdefault(item.cls.stored_name, {})
        of_runner[item.originalname] = of_runner.get(item.originalname, True) and report.passed

    def write(self) -> None:
        """Write the table, once every runner has had every case."""
        if not self._passed or any(set(CASES) - set(cases) for cases in self._passed.values()):
            return
        runners = sorted(self._passed)
        rows = [
            (_sentence(case), *("passed" if self._passed[runner][case] else "failed" for runner in runners))
            for case in CASES
        ]
        header = ("case", *(f"`{runner}`" for runner in runners))
        write_evidence("runner-conformance", "Every runner keeps the contract", header, rows)


def _sentence(case: str) -> str:
    return case.removeprefix("test_").replace("_", " ")
