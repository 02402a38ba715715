from pathlib import Path

import pytest

from geogenius.domain.enqueued import Accepted, Enqueued
from geogenius.domain.errors import Misconfigured
from geogenius.domain.run import RunId
from geogenius.runners.contract import Arguments
from geogenius.runners.explicit import explicit_runner


class Whole:
    def name(self) -> str:
        return "whole"

    def available(self) -> bool:
        return False

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:  # noqa: ARG002  the contract
        return Accepted()


class Partial:
    available = True

    def enqueue(self, run_id: RunId) -> Enqueued:  # noqa: ARG002  one argument too few
        return Accepted()


class Asynchronous(Whole):
    async def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:  # type: ignore[override]  # the fault
        return await self.enqueue(run_id, args)


class Nameless(Whole):
    def name(self) -> str:
        return " "


class Misnamed(Whole):
    def name(self) -> str:
        return 7  # type: ignore[return-value]  # the fault


class Fallible(Whole):
    def name(self) -> str:
        raise LookupError("no name today")


class Guarded(Whole):
    @property
    def enqueue(self) -> Enqueued:  # type: ignore[override]  # the fault
        raise LookupError("not connected")


class Several:
    """Nameless, and without one of its methods."""

    def name(self) -> str:
        return ""

    def available(self) -> bool:
        return True


class Demanding(Whole):
    def __init__(self, pool: object) -> None:
        self.pool = pool


@pytest.mark.parametrize("named", [Whole(), Whole, f"{__name__}:Whole"])
def test_an_object_a_class_and_a_path_name_a_runner(named: object) -> None:
    assert explicit_runner(named).name() == "whole"


@pytest.mark.parametrize(
    ("named", "words"),
    [
        pytest.param(Partial(), "name is missing; available is no method; enqueue does not take 2", id="object"),
        pytest.param(Partial, "name is missing; available is no method; enqueue does not take 2", id="class"),
        pytest.param(object(), "name is missing; available is missing; enqueue is missing", id="nothing of it"),
        pytest.param(Demanding, "cannot be made without arguments", id="class with arguments"),
        pytest.param(Asynchronous, "enqueue is asynchronous", id="asynchronous"),
        pytest.param(Nameless(), "name gives ' '", id="blank name"),
        pytest.param(Nameless, "name gives ' '", id="class with a blank name"),
        pytest.param(Misnamed(), "name gives 7", id="a number for a name"),
        pytest.param(Fallible(), "name raises LookupError: no name today", id="name raises"),
        pytest.param(Guarded(), "enqueue cannot be read: LookupError: not connected", id="property raises"),
        pytest.param(Several(), "name gives ''.*; enqueue is missing; geogenius.runners.contract", id="two at once"),
        pytest.param(7, "name is missing", id="a number"),
        pytest.param({"name": "whole"}, "name is missing", id="a mapping"),
        pytest.param("", "module:attribute", id="an empty path"),
        pytest.param("no_such_module_here:Runner", "cannot be imported", id="no module"),
        pytest.param("json:Runner", "cannot be imported", id="no attribute"),
        pytest.param("json", "module:attribute", id="no path"),
        pytest.param("json:dumps", "name is missing; available is missing; enqueue is missing", id="a function"),
    ],
)
def test_all_that_is_missing_is_named_at_once(named: object, words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        explicit_runner(named)


@pytest.mark.parametrize("text", ["raise RuntimeError('half written')", "exit(3)", "def broken(:"])
def test_a_module_that_does_not_import_is_named_with_what_it_says(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_of_a_host.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(Misconfigured, match=r"module_of_a_host:RUNNER': cannot be imported: \w+: .*importable where"):
        explicit_runner("module_of_a_host:RUNNER")
