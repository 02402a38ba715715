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


class Demanding(Whole):
    def __init__(self, pool: object) -> None:
        self.pool = pool


@pytest.mark.parametrize("named", [Whole(), Whole, f"{__name__}:Whole"])
def test_an_object_a_class_and_a_path_name_a_runner(named: object) -> None:
    assert explicit_runner(named).name() == "whole"


@pytest.mark.parametrize(
    ("named", "words"),
    [
        pytest.param(Partial(), "name is missing; available is missing; enqueue does not take 2", id="object"),
        pytest.param(Partial, "name is missing; available is missing; enqueue does not take 2", id="class"),
        pytest.param(object(), "name is missing; available is missing; enqueue is missing", id="nothing of it"),
        pytest.param(Demanding, "cannot be made without arguments", id="class with arguments"),
        pytest.param("no_such_module_here:Runner", "cannot be imported", id="no module"),
        pytest.param("json:Runner", "cannot be imported", id="no attribute"),
        pytest.param("json", "module:attribute", id="no path"),
        pytest.param("json:dumps", "name is missing; available is missing; enqueue is missing", id="a function"),
    ],
)
def test_all_that_is_missing_is_named_at_once(named: object, words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        explicit_runner(named)
