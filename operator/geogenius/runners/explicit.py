"""Runners that an installation names itself: found, and checked for the whole contract before their first use."""

import inspect
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from typing import cast

from geogenius.domain.errors import GeogeniusError, Misconfigured
from geogenius.runners.contract import Runner

_METHODS = {"name": 0, "available": 0, "enqueue": 2}
"""The methods of the contract, with the number of arguments each is called with."""

_REMEDY = "geogenius.runners.contract.Runner says what a runner has"


def explicit_runner(named: object) -> Runner:
    """The runner that this object is, that this class makes, or that `module:attribute` names.

    Raises Misconfigured, which names everything that is missing at once. Whether it is available is not asked.
    """
    what = f"runner {named!r:.200}"
    candidate = _imported(named, what) if isinstance(named, str) else named
    return _checked(candidate, what)


def made_runner(path: str, what: str) -> Runner:
    """The runner at `module:attribute`, which may also be a function that makes it when called without arguments.

    Raises Misconfigured, whose message begins with `what` and names everything that is missing at once.
    """
    candidate = _imported(path, what)
    if inspect.isroutine(candidate) and not _unfit(candidate, 0):
        candidate = _called(candidate, what)
        if isinstance(candidate, type):
            raise _refused(what, "its function gives a class and no runner")
    return _checked(candidate, what)


def _checked(candidate: object, what: str) -> Runner:
    _refuse_incomplete(candidate, what)
    if not isinstance(candidate, type):
        return cast("Runner", candidate)
    made = _called(candidate, what)
    _refuse_incomplete(made, what)
    return cast("Runner", made)


def _imported(path: str, what: str) -> object:
    module, separator, attribute = path.partition(":")
    if not (module and separator and attribute):
        raise _refused(what, "must be written as module:attribute")
    try:
        return reduce(getattr, attribute.split("."), import_module(module))
    except (Exception, SystemExit) as error:  # a module of a host may raise anything while it is imported
        remedy = "it must be importable where this program runs"
        raise _refused(what, f"cannot be imported: {_words(error)}; {remedy}") from error


def _called(make: Callable[[], object], what: str) -> object:
    try:
        return make()
    except GeogeniusError:
        raise
    except Exception as error:  # the code of a host may raise anything
        raise _refused(what, f"cannot be made without arguments: {_words(error)}") from error


def _refuse_incomplete(candidate: object, what: str) -> None:
    problems = {method: _problem(candidate, method, count) for method, count in _METHODS.items()}
    if problems["name"] is None and not isinstance(candidate, type):
        problems["name"] = _misnamed(cast("Runner", candidate))
    missing = [problem for problem in problems.values() if problem is not None]
    if missing:
        raise _refused(what, f"{'; '.join(missing)}; {_REMEDY}")


def _problem(candidate: object, method: str, count: int) -> str | None:
    try:
        function = getattr(candidate, method)
    except AttributeError:
        return f"{method} is missing"
    except Exception as error:  # noqa: BLE001  a property of a host may raise anything
        return f"{method} cannot be read: {_words(error)}"
    if not callable(function):
        return f"{method} is no method"
    if inspect.iscoroutinefunction(function):
        return f"{method} is asynchronous, and is called without waiting"
    bound_self = 1 if isinstance(candidate, type) and inspect.isfunction(function) else 0
    return f"{method} does not take {count} arguments" if _unfit(function, count + bound_self) else None


def _unfit(function: Callable[..., object], count: int) -> bool:
    """Whether it cannot be called with this number of arguments."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except (TypeError, ValueError):
        return True
    return False


def _misnamed(runner: Runner) -> str | None:
    try:
        name: object = runner.name()
    except Exception as error:  # noqa: BLE001  a runner of a host may raise anything
        return f"name raises {_words(error)}"
    return None if isinstance(name, str) and name.strip() else f"name gives {name!r:.80} and not the word to store"


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _refused(what: str, why: str) -> Misconfigured:
    return Misconfigured(f"{what}: {why}", reason="RunnerInvalid")
