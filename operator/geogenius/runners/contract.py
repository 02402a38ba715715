"""What a runner is: the contract that every runner keeps, the shipped ones and those of a host alike.

A runner only *starts* runs. It has no status and nothing to wait for: whatever started a run, its state is read from
the catalog. And it never fails a run: the pipeline owns failure, and the caller settles a refusal.
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from typing import Protocol, runtime_checkable

from geogenius.domain.enqueued import Accepted, Enqueued, NotEnqueued, OutcomeUnknown
from geogenius.domain.manifest import JsonValue
from geogenius.domain.observation import Observation
from geogenius.domain.run import Run, RunId

PUBLISH = "publish"
STALE_AFTER_SECONDS = "stale_after_seconds"

Arguments = Mapping[str, JsonValue]
"""JSON-safe; a runner hands them on to whatever executes the run, over a queue or a command line."""


class Runner(Protocol):
    """Starts runs. Shared by threads."""

    def name(self) -> str:
        """The word stored with a run before it is enqueued. The same for ever."""

    def available(self) -> bool:
        """Whether work can be accepted right now, probed live. Never raises; a no is no promise for later."""

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:
        """Start a run that is registered and committed.

        Accepted: the outcome is, or will be, recorded in the catalog; also for a run that has already failed and
        recorded that. NotEnqueued: definitely refused before acceptance, temporarily where it carries `retry_after`.
        OutcomeUnknown: acceptance may have happened.

        A second call for the same run starts nothing a second time: it is accepted again, or refused, and the
        database fence makes a doubled executor harmless. Never records a failure. What it raises counts as
        OutcomeUnknown, so a runner raises only where it cannot tell.
        """


@runtime_checkable
class Explains(Protocol):
    """A runner that can say why it is not available."""

    def why_not(self) -> str | None:
        """What keeps it from accepting work right now, with the remedy; None when nothing does. Changes nothing."""


@runtime_checkable
class Observes(Protocol):
    """A runner whose work outlives this process and can be looked at."""

    def observe(self, run: Run) -> Observation:
        """What the workload looks like now. Changes nothing, may be called before enqueue and after a restart.

        Raises Unavailable where that cannot be told.
        """


@runtime_checkable
class Cancels(Protocol):
    """A runner that can ask its work to stop."""

    def cancel(self, run: Run) -> None:
        """Ask the workload to stop; whether it did is told by `observe` and by the catalog.

        Done twice, or with nothing there, it does nothing more. Raises Unavailable where the wish did not get through.
        """


@runtime_checkable
class Forgets(Protocol):
    """A runner that leaves traces which can be removed."""

    def forget(self, run: Run) -> None:
        """Remove what is left of a run that has ended; a run that has not is left alone.

        Done twice it does nothing more. Raises Unavailable where it did not get through.
        """


def arguments(*, publish: bool, stale_after: timedelta) -> dict[str, JsonValue]:
    """The arguments of a run, as every runner understands them."""
    return {PUBLISH: publish, STALE_AFTER_SECONDS: int(stale_after.total_seconds())}


def publish(args: object) -> bool:
    """Whether to publish at the end; anything but a boolean reads as False."""
    return _argument(args, PUBLISH) is True


def stale_after_seconds(args: object) -> int | None:
    """The window without a sign of life, in seconds; anything but a positive integer reads as None."""
    window = _argument(args, STALE_AFTER_SECONDS)
    return window if isinstance(window, int) and not isinstance(window, bool) and window > 0 else None


def enqueue_with(runner: Runner, run_id: RunId, args: Arguments) -> Enqueued:
    """Ask a runner, and read whatever it does as one of the three answers.

    Of a runner that was written against the older contract, a returned error (an exception or a string) is a refusal.
    Whatever is raised, and any other value, tells nothing about acceptance. KeyboardInterrupt and the like pass.
    """
    try:
        answer: object = runner.enqueue(run_id, args)
    except Exception as error:  # noqa: BLE001  a runner of a host may raise anything, at any moment
        return OutcomeUnknown("RunnerRaised", f"{type(error).__name__}: {error}")
    match answer:
        case Accepted() | NotEnqueued() | OutcomeUnknown():
            return answer
        case Exception() | str():
            return NotEnqueued("RunnerRefused", str(answer) or type(answer).__name__)
        case _:
            return OutcomeUnknown("RunnerAnswerInvalid", f"the runner answered {answer!r:.200}")


def _argument(args: object, name: str) -> object:
    """The argument of this name: under a string, an Enum member of that value or name, or as an attribute."""
    if not isinstance(args, Mapping):
        return getattr(args, name, None)
    for key, value in args.items():
        if key == name or (isinstance(key, Enum) and name in (key.value, key.name.lower())):
            return value
    return None
