"""The suite can fail: each way to break the contract is noticed by the case that stands for it."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from typing_extensions import override

from geogenius.domain.enqueued import Accepted, Enqueued, NotEnqueued, OutcomeUnknown
from geogenius.domain.run import ExecutorId, Fence, RunError, RunId
from geogenius.runners.contract import Arguments
from geogenius.testing import CatalogBench, RunnerContract
from tests.contract.rigs import SpoolRig, TroubledSpool

Enqueue = Callable[[RunId, Arguments], Enqueued]
Fault = Callable[["FaultyRig", Enqueue, RunId, Arguments], Enqueued]


class FaultyRig(SpoolRig):
    """The host's runner, with a fault in how it answers."""

    def __init__(self, bench: CatalogBench, folder: Path, fault: Fault) -> None:
        super().__init__(bench, folder)
        sound = self.runner.enqueue
        rig = self

        class Faulty(TroubledSpool):
            @override
            def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:
                return fault(rig, sound, run_id, args)

        self.runner = Faulty(folder)


class Contract(RunnerContract):
    stored_name = "host_spool"


def forgets(_rig: FaultyRig, _sound: Enqueue, _run_id: RunId, _args: Arguments) -> Enqueued:
    return Accepted()


def forgets_the_intent(_rig: FaultyRig, sound: Enqueue, run_id: RunId, args: Arguments) -> Enqueued:
    return sound(run_id, {**args, "publish": False})


def forgets_the_window(_rig: FaultyRig, sound: Enqueue, run_id: RunId, args: Arguments) -> Enqueued:
    return sound(run_id, {**args, "stale_after_seconds": 1})


def publishes_all(_rig: FaultyRig, sound: Enqueue, run_id: RunId, args: Arguments) -> Enqueued:
    return sound(run_id, {**args, "publish": True})


def takes_silence_for_no(_rig: FaultyRig, sound: Enqueue, run_id: RunId, args: Arguments) -> Enqueued:
    try:
        return sound(run_id, args)
    except Exception as error:  # noqa: BLE001  the fault
        return NotEnqueued("QueueFailed", str(error))


def takes_no_for_yes(_rig: FaultyRig, sound: Enqueue, run_id: RunId, args: Arguments) -> Enqueued:
    sound(run_id, args)
    return Accepted()


def refuses_without_words(_rig: FaultyRig, sound: Enqueue, run_id: RunId, args: Arguments) -> Enqueued:
    return answer if isinstance(answer := sound(run_id, args), Accepted) else NotEnqueued("", "")


def starts_what_it_refuses(rig: FaultyRig, sound: Enqueue, run_id: RunId, args: Arguments) -> Enqueued:
    answer = sound(run_id, args)
    if not isinstance(answer, Accepted):
        rig.bench.execute(run_id)
    return answer


def fails_what_it_refuses(rig: FaultyRig, sound: Enqueue, run_id: RunId, args: Arguments) -> Enqueued:
    answer = sound(run_id, args)
    if not isinstance(answer, Accepted):
        fence = Fence(run_id, ExecutorId(uuid4()))
        rig.bench.runs.fail(fence, RunError("pending", "NotStarted", "the runner failed the run"))
    return answer


def queues_what_it_refuses(rig: FaultyRig, sound: Enqueue, run_id: RunId, args: Arguments) -> Enqueued:
    if rig.runner.folder.is_dir():
        return sound(run_id, args)
    (rig._away / f"{run_id}.json").write_text(json.dumps(dict(args)))
    return NotEnqueued("NoWorker", "nobody listens")


def knows_nothing(_rig: FaultyRig, sound: Enqueue, run_id: RunId, args: Arguments) -> Enqueued:
    sound(run_id, args)
    return OutcomeUnknown("Unknown", "who knows")


def trusts_arguments(_rig: FaultyRig, sound: Enqueue, run_id: RunId, args: Arguments) -> Enqueued:
    window = args["stale_after_seconds"]
    assert isinstance(window, int)
    return sound(run_id, args)


def asks_the_second_time_in_vain(rig: FaultyRig, sound: Enqueue, run_id: RunId, args: Arguments) -> Enqueued:
    if (rig.runner.folder / f"{run_id}.json").exists():
        raise FileExistsError(run_id)
    return sound(run_id, args)


FAULTS: dict[Fault, tuple[str, ...]] = {
    forgets: ("an_accepted_run_is_completed", "a_backend_that_dies_after_acceptance_leaves_an_end"),
    forgets_the_intent: ("publish_and_window_reach_the_pipeline",),
    forgets_the_window: ("publish_and_window_reach_the_pipeline", "what_shall_not_be_published_is_not"),
    publishes_all: ("what_shall_not_be_published_is_not",),
    takes_silence_for_no: (
        "a_lost_reply_is_unknown",
        "after_a_lost_reply_it_is_enqueued_again_and_executed_once",
        "what_nobody_foresaw_is_unknown_and_leaves_the_run_alone",
        "a_backend_that_dies_in_a_start_leaves_it_unknown",
        "after_a_death_in_a_start_it_is_executed_once_at_most",
    ),
    takes_no_for_yes: (
        "a_refusal_says_why_and_starts_nothing",
        "a_refused_run_can_be_enqueued_again",
        "without_its_backend_nothing_is_accepted",
    ),
    refuses_without_words: ("a_refusal_says_why_and_starts_nothing",),
    starts_what_it_refuses: ("a_refusal_says_why_and_starts_nothing", "without_its_backend_nothing_is_accepted"),
    fails_what_it_refuses: (
        "a_refusal_says_why_and_starts_nothing",
        "its_side_cannot_record_a_failure_and_never_needs_to",
    ),
    queues_what_it_refuses: ("without_its_backend_nothing_is_accepted",),
    knows_nothing: (
        "a_completed_run_is_left_as_it_is",
        "a_failed_run_is_left_as_it_is",
        "a_run_that_fails_by_itself_is_accepted",
    ),
    trusts_arguments: ("arguments_of_wrong_types_raise_nothing_and_publish_nothing",),
    asks_the_second_time_in_vain: (
        "enqueued_twice_it_is_executed_once",
        "enqueued_by_threads_at_once_it_is_executed_once",
    ),
}
"""Each fault with the cases that it breaks."""


@pytest.mark.parametrize(
    ("fault", "case"),
    [pytest.param(fault, case, id=f"{fault.__name__}-{case}") for fault in FAULTS for case in FAULTS[fault]],
)
def test_a_fault_is_noticed(fault: Fault, case: str, bench: CatalogBench, tmp_path: Path) -> None:
    bench.end_seconds = 1.0  # the worker has done its work by then
    rig = FaultyRig(bench, tmp_path / "spool", fault)

    with pytest.raises((AssertionError, TimeoutError)):
        getattr(Contract(), f"test_{case}")(rig)


def test_a_runner_that_changes_its_name_is_noticed(bench: CatalogBench, tmp_path: Path) -> None:
    class Renamed(RunnerContract):
        stored_name = "another"

    with pytest.raises(AssertionError, match="name"):
        Renamed().test_it_has_the_whole_contract_and_keeps_its_name(SpoolRig(bench, tmp_path / "spool"))


def test_a_role_that_could_fail_runs_is_noticed(bench: CatalogBench, tmp_path: Path) -> None:
    powerful = CatalogBench(bench.database, bench.database, tmp_path)

    with pytest.raises(AssertionError, match="raises"):
        Contract().test_its_side_cannot_record_a_failure_and_never_needs_to(SpoolRig(powerful, tmp_path / "spool"))


def test_a_runner_that_is_never_available_is_noticed(bench: CatalogBench, tmp_path: Path) -> None:
    rig = SpoolRig(bench, tmp_path / "spool")
    rig.stop()

    with pytest.raises(AssertionError, match="available"):
        Contract().test_it_is_available_while_its_backend_is_alive(rig)
