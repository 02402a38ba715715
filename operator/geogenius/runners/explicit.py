"""Runners that an installation names itself: found, and checked for the whole contract before their first use."""

import inspect
from importlib import import_module
from typing import cast

from geogenius.domain.errors import Misconfigured
from geogenius.runners.contract import Runner

_METHODS = {"name": 0, "available": 0, "enqueue": 2}
"""The methods of the contract, with the number of arguments each is called with."""


def explicit_runner(named: object) -> Runner:
    """The runner that this object is, that this class makes, or that `module:attribute` names.

    Raises Misconfigured, which names everything that is missing at once. Whether it is available is not asked.
    """
    candidate = _imported(named) if isinstance(named, str) else named
    missing = [problem for method, count in _METHODS.items() for problem in _problems(candidate, method, count)]
    if missing:
        raise _refused(named, "; ".join(missing))
    if not isinstance(candidate, type):
        return cast("Runner", candidate)
    try:
        return cast("Runner", candidate())
    except TypeError as error:
        raise _refused(named, f"cannot be made without arguments: {error}") from error


def _imported(path: str) -> object:
    module, separator, attribute = path.partition(":")
    if not (module and separator and attribute):
        raise _refused(path, "must be written as module:attribute")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise _refused(path, f"cannot be imported: {error}") from error


def _problems(candidate: object, method: str, count: int) -> list[str]:
    function = getattr(candidate, method, None)
    if not callable(function):
        return [f"{method} is missing"]
    bound_self = 1 if isinstance(candidate, type) and inspect.isfunction(function) else 0
    try:
        inspect.signature(function).bind(*[None] * (count + bound_self))
    except (TypeError, ValueError):
        return [f"{method} does not take {count} arguments"]
    return []


def _refused(named: object, why: str) -> Misconfigured:
    return Misconfigured(f"runner {named!r}: {why}", reason="RunnerInvalid")
