"""Which runner starts an import: the one that the call names, else the configured one, else the first that can."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Literal

from geogenius.domain.errors import GeogeniusError, Misconfigured
from geogenius.runners.contract import Explains, Runner
from geogenius.runners.explicit import explicit_runner, made_runner

GROUP = "geogenius.runners"
"""Where installed packages name runners: an entry point is a runner, its class, or a function that makes it."""

SUPERVISED = "task"
AUTOMATIC = (SUPERVISED, "inline")
"""Chosen without being named, in this order. All others are chosen by name only."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """A runner of this package. `missing` says what it lacks here, with the remedy: then it counts as unknown.

    Neither is called before its runner is asked for; `build` may raise Misconfigured, and gives the same runner again.
    """

    build: Callable[[], Runner]
    missing: Callable[[], str | None] = lambda: None


@dataclass(frozen=True, slots=True)
class Offer:
    """The runners that can be chosen here: shipped ones by the names they store, and those of installed packages.

    `supervised` says that the host configured a task supervisor: then `task` is chosen even if that is dead, and its
    refusals say so. Otherwise `task` is chosen where it is available, which may start a supervisor of its own.
    """

    shipped: Mapping[str, Shipped]
    installed: Sequence[EntryPoint] = ()
    supervised: bool = False


Origin = Literal["shipped", "entry point"]


@dataclass(frozen=True, slots=True)
class Listed:
    """A runner as it is listed; `reason` says why it cannot accept work right now."""

    name: str
    origin: Origin
    available: bool
    reason: str | None = None


def installed_runners() -> tuple[EntryPoint, ...]:
    """What installed packages offer, by name; nothing of them is imported yet."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)))


def resolve(option: object, configured: object, offer: Offer) -> Runner:
    """The runner that the call names, else the configured one, else the first of AUTOMATIC that can be chosen.

    Each may be a runner, a class that makes one, `module:attribute`, or a name of the offer; None and "" name nothing.
    Raises Misconfigured with everything that is wrong with what was named; nothing else is tried then. Whether a named
    runner is available is not asked: its own answers tell.
    """
    for named in (option, configured):
        if named is not None and named != "":
            return _named(named, offer)
    return _automatic(offer)


def runner_for_name(name: str, shipped: Mapping[str, Shipped]) -> Runner | None:
    """The shipped runner that stores this name; None where there is none, or what it needs is not installed."""
    known = shipped.get(name)
    return None if known is None or known.missing() is not None else known.build()


def listing(offer: Offer) -> tuple[Listed, ...]:
    """Every runner of the offer and whether it can accept work right now, shipped ones first. Never raises."""
    shipped = [_listed(name, "shipped", partial(_built, name, known)) for name, known in offer.shipped.items()]
    installed = [_listed(point.name, "entry point", partial(_loaded, point, offer)) for point in offer.installed]
    return (*shipped, *installed)


def _named(named: object, offer: Offer) -> Runner:
    if not isinstance(named, str) or ":" in named:
        return explicit_runner(named)
    if named in offer.shipped:
        return _built(named, offer.shipped[named])
    points = [point for point in offer.installed if point.name == named]
    if not points:
        known = ", ".join(sorted({*offer.shipped, *(point.name for point in offer.installed)}))
        raise Misconfigured(
            f"there is no runner {named!r} here: name one of {known}, or write one of your own as module:attribute",
            reason="RunnerUnknown",
        )
    return _loaded(points[0], offer)


def _automatic(offer: Offer) -> Runner:
    """Asks no further than needed: to ask `task` may start a supervisor."""
    for name in AUTOMATIC:
        runner = runner_for_name(name, offer.shipped)
        if runner is not None and ((name == SUPERVISED and offer.supervised) or runner.available()):
            return runner
    raise Misconfigured("no runner can be chosen here: name one", reason="RunnerUnknown")


def _built(name: str, known: Shipped) -> Runner:
    missing = known.missing()
    if missing is not None:
        raise Misconfigured(f"runner {name!r} cannot be used here: {missing}", reason="RunnerUnknown")
    return known.build()


def _loaded(point: EntryPoint, offer: Offer) -> Runner:
    """The runner of an installed package. Its name is that of its entry point and nobody else's, or it is refused."""
    where = f"runner {point.name!r} of {_package(point)} ({point.value})"
    others = [other for other in offer.installed if other.name == point.name and other != point]
    if point.name in offer.shipped:
        raise Misconfigured(f"{where} takes the name of a shipped one: it needs another", reason="RunnerInvalid")
    if others:
        rivals = ", ".join(f"{_package(other)} ({other.value})" for other in others)
        raise Misconfigured(f"{where} has the name of another, of {rivals}: remove one", reason="RunnerInvalid")
    runner = made_runner(point.value, where)
    if runner.name() != point.name:
        raise Misconfigured(
            f"{where} calls itself {runner.name()!r}: the entry point must have that name", reason="RunnerInvalid"
        )
    return runner


def _listed(name: str, origin: Origin, make: Callable[[], Runner]) -> Listed:
    try:
        runner = make()
        available = runner.available() is True
        reason = None if available else _why_not(runner)
    except GeogeniusError as error:
        return Listed(name, origin, available=False, reason=str(error))
    except Exception as error:  # noqa: BLE001  a runner of a host may raise anything; the others are listed all the same
        return Listed(name, origin, available=False, reason=f"{type(error).__name__}: {error}")
    return Listed(name, origin, available, reason)


def _why_not(runner: Runner) -> str:
    said: object = runner.why_not() if isinstance(runner, Explains) else None
    return str(said) if said else "it does not accept work right now"


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else point.dist.name
