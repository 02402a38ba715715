"""What an author of a runner gives to the conformance suite: the runner, its backend, and ways to make it fail."""

from typing import Protocol

from geogenius.domain.intent import ImportIntent
from geogenius.domain.run import RunId
from geogenius.runners.contract import Runner
from geogenius.testing.bench import Arrived, CatalogBench


class RunnerRig(Protocol):
    """One runner with a backend of its own, new for each test. Inherit from it to get what stands here already.

    What the runner itself does to the catalog, it does through `bench.starter`, whose role cannot record a failure;
    what executes runs may use `bench.execute` or `bench.database`. Troubles happen once, to the next start.
    """

    bench: CatalogBench
    runner: Runner

    def intended(self, intent: ImportIntent) -> ImportIntent:
        """The intent as this runner needs it, such as with a workload."""
        return intent

    def work(self) -> None:
        """Let the backend execute everything it has taken on; returns when nothing is left to begin."""
        ...

    def arrived(self, run_id: RunId) -> Arrived | None:
        """What the executing side was told of a run; None where nothing of the run has reached it."""
        return self.bench.arrived(run_id)

    def refuse_next(self) -> None:
        """The backend, alive, definitely refuses."""
        ...

    def lose_reply(self) -> None:
        """The start happens, and the runner does not hear of it."""
        ...

    def break_next(self) -> None:
        """Something that nobody foresaw leaves `enqueue` before anything is started; its message contains `a bug`."""
        ...

    def die_in_next(self) -> None:
        """The backend dies while it handles the start, so that nobody can tell whether it took it on."""
        ...

    def stop(self) -> None:
        """The backend is gone, as after a crash; what it keeps durably is kept."""
        ...

    def start(self) -> None:
        """The backend is back."""
        ...
