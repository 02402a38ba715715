"""One suite for every runner, the shipped ones and a host's: what the launcher relies on."""

import ast
import json
from collections.abc import Iterator
from datetime import timedelta
from inspect import getsource
from pathlib import Path
from types import ModuleType

import pytest

from geogenius.domain.enqueued import Accepted, Enqueued, NotEnqueued, OutcomeUnknown
from geogenius.runners import inline, kubernetes_job
from geogenius.runners.contract import Arguments, arguments, enqueue_with
from geogenius.runners.explicit import explicit_runner
from tests.contract.rigs import RIGS, Catalog, Rig
from tests.support.builders import RUN_ID, a_run

RUN = a_run(publish=True, stale_after=timedelta(minutes=7))
ARGS: Arguments = json.loads(json.dumps(arguments(publish=RUN.publish, stale_after=RUN.stale_after)))


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(RUN)


@pytest.fixture(params=RIGS)
def stored_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def rig(stored_name: str, catalog: Catalog, tmp_path: Path) -> Iterator[Rig]:
    with RIGS[stored_name](catalog, tmp_path) as built:
        yield built


def enqueue(rig: Rig) -> Enqueued:
    return enqueue_with(rig.runner, RUN_ID, ARGS)


def test_a_runner_passes_the_check_of_explicit_ones_and_keeps_its_name(rig: Rig, stored_name: str) -> None:
    assert explicit_runner(rig.runner) is rig.runner
    assert rig.runner.name() == stored_name


def test_a_runner_with_a_living_backend_is_available(rig: Rig) -> None:
    assert rig.runner.available() is True


def test_a_run_is_started_once_with_its_publish_intent_and_window(rig: Rig) -> None:
    answer = enqueue(rig)

    assert isinstance(answer, Accepted)
    assert rig.executions() == [(True, 420)]


def test_a_run_that_is_enqueued_twice_is_accepted_twice_and_executed_once(rig: Rig) -> None:
    answers = [enqueue(rig), enqueue(rig)]

    assert answers[0] == answers[1]
    assert isinstance(answers[1], Accepted)
    assert len(rig.executions()) == 1


def test_a_refusal_is_definite_says_why_and_starts_nothing(rig: Rig) -> None:
    rig.refuse_next()

    answer = enqueue(rig)

    assert isinstance(answer, NotEnqueued)
    assert answer.reason
    assert answer.message
    assert rig.executions() == []


def test_a_refused_run_can_be_enqueued_again(rig: Rig) -> None:
    rig.refuse_next()
    enqueue(rig)

    assert isinstance(enqueue(rig), Accepted)
    assert len(rig.executions()) == 1


def test_a_lost_reply_is_unknown_and_never_a_refusal(rig: Rig) -> None:
    rig.lose_next()

    answer = enqueue(rig)

    assert isinstance(answer, OutcomeUnknown)
    assert len(rig.executions()) == 1


def test_enqueueing_again_after_a_lost_reply_starts_nothing_a_second_time(rig: Rig) -> None:
    rig.lose_next()
    enqueue(rig)

    assert isinstance(enqueue(rig), Accepted)
    assert len(rig.executions()) == 1


def test_what_nobody_foresaw_is_unknown(rig: Rig) -> None:
    rig.break_next()

    answer = enqueue(rig)

    assert isinstance(answer, OutcomeUnknown)
    assert "a bug" in answer.message


@pytest.mark.parametrize("module", [inline, kubernetes_job])
def test_a_shipped_runner_has_no_way_to_record_a_failure(module: ModuleType) -> None:
    imported = {node.module for node in ast.walk(ast.parse(getsource(module))) if isinstance(node, ast.ImportFrom)}

    assert not any((name or "").startswith(("geogenius.catalog", "geogenius.db")) for name in imported)
