"""How every benchmark reports: ours beside the floor and beside peers, with the goal and whether it is met."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Result:
    """One work, measured several times, in seconds; the goal is an upper limit, and says where it comes from."""

    work: str
    ours: Sequence[float]
    floor: Sequence[float]
    goal_seconds: float
    goal: str
    peers: str = "-"

    @property
    def met(self) -> bool:
        """Whether our median keeps to the goal."""
        return median(self.ours) <= self.goal_seconds

    @property
    def ratio(self) -> float:
        """How many times the floor ours takes."""
        return median(self.ours) / median(self.floor)


def spread(seconds: Sequence[float]) -> str:
    """Median and range."""
    return f"{readable(median(seconds))} ({readable(min(seconds))} - {readable(max(seconds))})"


def readable(seconds: float) -> str:
    """Seconds, or milliseconds below one."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.2f} ms"


def show(results: Sequence[Result], console: Console) -> None:
    """Print the table: medians with the range of what was measured."""
    table = Table("work", "ours", "floor", "peers", "ratio", "goal", "met")
    for result in results:
        goal = f"{result.goal} = {readable(result.goal_seconds)}"
        met = "yes" if result.met else "NO"
        row = (result.work, spread(result.ours), spread(result.floor), result.peers, f"{result.ratio:.2f}", goal, met)
        table.add_row(*row)
    console.print(table)
