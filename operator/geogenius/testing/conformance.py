"""The conformance suite: what the launcher relies on in every runner, each promise as one test on a real catalog."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import ClassVar
from uuid import uuid4

from geogenius.catalog.runs import Runs
from geogenius.domain.enqueued import Accepted, Enqueued, NotEnqueued, OutcomeUnknown
from geogenius.domain.errors import GeogeniusError
from geogenius.domain.executed import Executed
from geogenius.domain.run import ExecutorId, Fence, Run, RunError, RunState
from geogenius.library import Completed, Context, await_run, status
from geogenius.runners.contract import Arguments
from geogenius.runners.explicit import explicit_runner
from geogenius.runners.inline import InlineRunner
from geogenius.testing.bench import STALE_AFTER, Arrived
from geogenius.testing.rig import RunnerRig

AT_ONCE = 4
"""How many threads ask for one run at the same moment."""

NONSENSE: Arguments = {"publish": "yes", "stale_after_seconds": {"minutes": "soon"}, "unknown": [None]}
"""Arguments of wrong types, as a queue that others write to may hand them over."""


class RunnerContract:
    """Inherit from it in a class `Test…`, say the stored name, and give a pytest fixture `rig` with a new RunnerRig.

    ```python
    class TestMyRunner(RunnerContract):
        stored_name = "my_runner"

        @pytest.fixture
        def rig(self, tmp_path):
            with CatalogBench.open(WRITER, STARTER, tmp_path) as bench:
                yield MyRig(bench)
    ```
    """

    stored_name: ClassVar[str]

    def test_it_has_the_whole_contract_and_keeps_its_name(self, rig: RunnerRig) -> None:
        """Runs carry the name for ever: a runner that changes it changes what they say."""
        demand(explicit_runner(rig.runner) is rig.runner, "the check of explicit runners gives the runner itself")
        demand(rig.runner.name() == self.stored_name, f"name() is {self.stored_name!r}")
        self.accept(rig, self.registered(rig))
        demand(rig.runner.name() == self.stored_name, "name() is the same after a start")

    def test_it_is_available_while_its_backend_is_alive(self, rig: RunnerRig) -> None:
        """Availability is probed live."""
        demand(rig.runner.available() is True, "available() is True while the backend is alive")

    def test_an_accepted_run_is_completed(self, rig: RunnerRig) -> None:
        """Accepted means that the outcome is, or will be, recorded."""
        run = self.registered(rig)
        self.accept(rig, run)
        self.complete(rig, run)

    def test_publish_and_window_reach_the_pipeline(self, rig: RunnerRig) -> None:
        """After a round trip through JSON, both are what was wanted."""
        run = self.registered(rig, publish=True)
        self.accept(rig, run)
        self.complete(rig, run)
        self.demand_arrived(rig, run, Arrived(publish=True, stale_after_seconds=_seconds(STALE_AFTER)))
        demand(rig.bench.run(run.run_id).published, "the release is published")

    def test_what_shall_not_be_published_is_not(self, rig: RunnerRig) -> None:
        """A missing intent is no intent."""
        run = self.registered(rig, publish=False)
        self.accept(rig, run)
        self.complete(rig, run)
        self.demand_arrived(rig, run, Arrived(publish=False, stale_after_seconds=_seconds(STALE_AFTER)))
        demand(not rig.bench.run(run.run_id).published, "the release is not published")

    def test_enqueued_twice_it_is_executed_once(self, rig: RunnerRig) -> None:
        """The second time it is accepted again, or refused; never unknown, and never executed a second time."""
        run = self.registered(rig)
        self.accept(rig, run)
        known(rig.bench.ask(rig.runner, run.run_id))
        first = self.complete(rig, run)
        known(rig.bench.ask(rig.runner, run.run_id))
        self.demand_kept(rig, first)

    def test_enqueued_by_threads_at_once_it_is_executed_once(self, rig: RunnerRig) -> None:
        """Runners are shared by threads."""
        run = self.registered(rig)
        together = Barrier(AT_ONCE, timeout=rig.bench.end_seconds)

        def ask(_: int) -> Enqueued:
            together.wait()
            return rig.bench.ask(rig.runner, run.run_id)

        with ThreadPoolExecutor(AT_ONCE) as threads:
            answers = [known(answer) for answer in threads.map(ask, range(AT_ONCE), timeout=2 * rig.bench.end_seconds)]
        demand(any(isinstance(answer, Accepted) for answer in answers), f"one of {answers} is Accepted")
        self.complete(rig, run)

    def test_a_refusal_says_why_and_starts_nothing(self, rig: RunnerRig) -> None:
        """NotEnqueued is definite: nothing of the run ever reaches the backend."""
        run = self.registered(rig)
        rig.refuse_next()
        refused(rig.bench.ask(rig.runner, run.run_id))
        rig.work()
        self.demand_untouched(rig, run)

    def test_a_refused_run_can_be_enqueued_again(self, rig: RunnerRig) -> None:
        """The launcher asks again after a temporary refusal."""
        run = self.registered(rig)
        rig.refuse_next()
        refused(rig.bench.ask(rig.runner, run.run_id))
        self.accept(rig, run)
        self.complete(rig, run)

    def test_a_lost_reply_is_unknown(self, rig: RunnerRig) -> None:
        """It is never a refusal: the run may be executed, and here it is."""
        run = self.registered(rig)
        rig.lose_reply()
        unknown(rig.bench.ask(rig.runner, run.run_id))
        self.complete(rig, run)

    def test_after_a_lost_reply_it_is_enqueued_again_and_executed_once(self, rig: RunnerRig) -> None:
        """That is how the launcher resolves what it does not know."""
        run = self.registered(rig)
        rig.lose_reply()
        unknown(rig.bench.ask(rig.runner, run.run_id))
        known(rig.bench.ask(rig.runner, run.run_id))
        self.complete(rig, run)

    def test_what_nobody_foresaw_is_unknown_and_leaves_the_run_alone(self, rig: RunnerRig) -> None:
        """What a runner raises tells nothing about acceptance."""
        run = self.registered(rig)
        rig.break_next()
        answer = unknown(rig.bench.ask(rig.runner, run.run_id))
        demand("a bug" in answer.message, f"the message has the words of the error: {answer.message!r}")
        rig.work()
        self.demand_untouched(rig, run)

    def test_arguments_of_wrong_types_raise_nothing_and_publish_nothing(self, rig: RunnerRig) -> None:
        """They fall back to what they mean when they are missing, or are refused; the stored run stays the judge."""
        run = self.registered(rig, publish=False)
        answer = known(rig.bench.ask(rig.runner, run.run_id, NONSENSE))
        rig.work()
        if isinstance(answer, Accepted):
            self.complete(rig, run)
        demand(not rig.bench.run(run.run_id).published, "nothing is published that was not to be")

    def test_without_its_backend_nothing_is_accepted(self, rig: RunnerRig) -> None:
        """It dies before: `available` answers and does not raise, and the run is left as it was."""
        run = self.registered(rig)
        rig.stop()
        demand(isinstance(rig.runner.available(), bool), "available() is a boolean without a backend, too")
        answer = rig.bench.ask(rig.runner, run.run_id)
        demand(not isinstance(answer, Accepted), f"without a backend nothing is accepted: {answer}")
        self.demand_untouched(rig, run)
        if isinstance(answer, NotEnqueued):
            rig.start()
            rig.work()
            self.demand_untouched(rig, run)

    def test_when_its_backend_is_back_it_accepts(self, rig: RunnerRig) -> None:
        """A runner keeps no grudge."""
        run = self.registered(rig)
        rig.stop()
        rig.bench.ask(rig.runner, run.run_id)
        rig.start()
        demand(rig.runner.available() is True, "available() is True again")
        self.accept(rig, run)
        self.complete(rig, run)

    def test_a_backend_that_dies_in_a_start_leaves_it_unknown(self, rig: RunnerRig) -> None:
        """It dies during: nobody can tell, so nobody says no."""
        run = self.registered(rig)
        rig.die_in_next()
        unknown(rig.bench.ask(rig.runner, run.run_id))

    def test_after_a_death_in_a_start_it_is_executed_once_at_most(self, rig: RunnerRig) -> None:
        """Asked again, it is accepted or refused; an executor that was lost is not replaced."""
        run = self.registered(rig)
        rig.die_in_next()
        unknown(rig.bench.ask(rig.runner, run.run_id))
        lost = rig.bench.run(run.run_id).executor_id
        rig.start()
        known(rig.bench.ask(rig.runner, run.run_id))
        rig.work()
        if lost is None:
            rig.bench.ended(run.run_id)
        else:
            demand(rig.bench.run(run.run_id).executor_id == lost, "no second executor takes the run over")

    def test_a_backend_that_dies_after_acceptance_leaves_an_end(self, rig: RunnerRig) -> None:
        """It dies after: Accepted was the promise of a recorded end, whichever."""
        run = self.registered(rig)
        self.accept(rig, run)
        rig.stop()
        rig.start()
        rig.work()
        rig.bench.ended(run.run_id)

    def test_a_completed_run_is_left_as_it_is(self, rig: RunnerRig) -> None:
        """Whoever completed it."""
        run = self.registered(rig)
        rig.bench.execute(run.run_id)
        before = rig.bench.ended(run.run_id)
        demand(before.state is RunState.COMPLETED, f"the bench completed the run: {before.error}")
        known(rig.bench.ask(rig.runner, run.run_id))
        self.demand_kept(rig, before)

    def test_a_failed_run_is_left_as_it_is(self, rig: RunnerRig) -> None:
        """A retry is another run."""
        run = self.registered(rig, sound=False)
        rig.bench.execute(run.run_id)
        before = rig.bench.ended(run.run_id)
        demand(before.state is RunState.FAILED, "the bench failed the run")
        known(rig.bench.ask(rig.runner, run.run_id))
        self.demand_kept(rig, before)

    def test_a_run_that_fails_by_itself_is_accepted(self, rig: RunnerRig) -> None:
        """The runner started it; the failure belongs to the pipeline, which recorded it."""
        run = self.registered(rig, sound=False)
        self.accept(rig, run)
        rig.work()
        ended = rig.bench.ended(run.run_id)
        demand(ended.state is RunState.FAILED, f"the run has failed, not {ended.state}")
        demand(ended.error is not None and ended.error.reason == "ChecksumMismatch", f"the pipeline says why: {ended}")

    def test_its_side_cannot_record_a_failure_and_never_needs_to(self, rig: RunnerRig) -> None:
        """Its role has no right to; whatever goes wrong in a start, the run stays what it was."""
        run = self.registered(rig)
        fence = Fence(run.run_id, ExecutorId(uuid4()))
        error = raised(lambda: Runs(rig.bench.starter).fail(fence, RunError("pending", "Tried", "by the suite")))
        demand(error.reason == "PermissionMissing", f"the role of `bench.starter` may not fail runs: {error}")
        for trouble in (rig.refuse_next, rig.break_next):
            trouble()
            rig.bench.ask(rig.runner, run.run_id)
            self.demand_untouched(rig, run)
        rig.stop()
        rig.bench.ask(rig.runner, run.run_id)
        self.demand_untouched(rig, run)

    def test_its_runs_are_readable_under_another_runner(self, rig: RunnerRig) -> None:
        """State is read from the catalog, whatever started the run and whatever is configured since."""
        run = self.registered(rig)
        self.accept(rig, run)
        rig.work()
        context = Context.on(rig.bench.database, InlineRunner(_never))
        ended = await_run(context, run.run_id, timedelta(seconds=rig.bench.end_seconds))
        demand(isinstance(ended, Completed), f"the other context sees the end: {ended}")
        seen = status(context, run.run_id)
        demand(seen is not None and seen.runner == self.stored_name, f"the run names its runner: {seen}")

    def registered(self, rig: RunnerRig, *, publish: bool = False, sound: bool = True) -> Run:
        """A new run for this runner."""
        intent = rig.intended(rig.bench.intent(self.stored_name, publish=publish))
        return rig.bench.register(intent, sound=sound)

    def accept(self, rig: RunnerRig, run: Run) -> None:
        """The runner accepts the run."""
        answer = rig.bench.ask(rig.runner, run.run_id)
        demand(isinstance(answer, Accepted), f"the run is Accepted, not {answer}")

    def complete(self, rig: RunnerRig, run: Run) -> Run:
        """The backend works, and the run is completed."""
        rig.work()
        ended = rig.bench.ended(run.run_id)
        demand(ended.state is RunState.COMPLETED, f"the run is completed, not {ended.state}: {ended.error}")
        return ended

    def demand_arrived(self, rig: RunnerRig, run: Run, wanted: Arrived) -> None:
        """This reached the executing side."""
        arrived = rig.arrived(run.run_id)
        demand(arrived == wanted, f"{wanted} reaches the executing side, not {arrived}")

    def demand_untouched(self, rig: RunnerRig, run: Run) -> None:
        """Nothing of the run has reached the backend, and the catalog has it as it was registered."""
        found, arrived = rig.bench.run(run.run_id), rig.arrived(run.run_id)
        demand(arrived is None, f"nothing reaches the executing side, not {arrived}")
        demand(found.state is RunState.PENDING, f"the run is pending, not {found.state}: {found.error}")
        demand(found.executor_id is None, "nobody has claimed the run")

    def demand_kept(self, rig: RunnerRig, before: Run) -> None:
        """The backend has worked again and the end of the run is what it was."""
        rig.work()
        found = rig.bench.run(before.run_id)
        demand(_end(found) == _end(before), f"the end of the run is kept: {_end(before)}, not {_end(found)}")


def demand(met: bool, promise: str) -> None:  # noqa: FBT001  reads as a sentence
    """Raises AssertionError where a promise is not kept."""
    if not met:
        raise AssertionError(f"not so: {promise}")


def known(answer: Enqueued) -> Accepted | NotEnqueued:
    """The answer, which is a yes or a no."""
    if isinstance(answer, OutcomeUnknown):
        raise AssertionError(f"the answer is Accepted or NotEnqueued, not {answer}")  # noqa: TRY004  a failed test
    return answer


def refused(answer: Enqueued) -> NotEnqueued:
    """The answer, which is a refusal that says why."""
    if not isinstance(answer, NotEnqueued):
        raise AssertionError(f"the answer is NotEnqueued, not {answer}")  # noqa: TRY004  a failed test
    demand(bool(answer.reason and answer.message), f"a refusal has a reason and a message: {answer}")
    return answer


def unknown(answer: Enqueued) -> OutcomeUnknown:
    """The answer, which says that nobody knows."""
    if not isinstance(answer, OutcomeUnknown):
        raise AssertionError(f"the answer is OutcomeUnknown, not {answer}")  # noqa: TRY004  a failed test
    return answer


def raised(call: Callable[[], object]) -> GeogeniusError:
    """What the call raises of ours."""
    try:
        call()
    except GeogeniusError as error:
        return error
    raise AssertionError("the call raises")


def _end(run: Run) -> tuple[object, ...]:
    return run.state, run.executor_id, run.completed_at, run.error, run.published


def _seconds(window: timedelta) -> int:
    return int(window.total_seconds())


def _never(_: object) -> Executed:
    raise AssertionError("another runner is not asked")
