from collections.abc import Callable
from importlib.metadata import EntryPoint

import pytest

from geogenius.domain.enqueued import Accepted, Enqueued
from geogenius.domain.errors import Misconfigured
from geogenius.domain.run import RunId
from geogenius.runners.contract import Arguments, Runner
from geogenius.runners.resolution import GROUP, Listed, Offer, Shipped, listing, resolve, runner_for_name

EXTRA = "install it with `pip install 'geogenius[pgflow]'`"


class Stub:
    """A runner that is available or not."""

    def __init__(self, name: str = "stub", *, available: bool = True) -> None:
        self._name = name
        self._available = available

    def name(self) -> str:
        return self._name

    def available(self) -> bool:
        return self._available

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:  # noqa: ARG002  the contract
        return Accepted()


class Explaining(Stub):
    def why_not(self) -> str | None:
        return "nobody listens: start a worker"


class Falling(Stub):
    def available(self) -> bool:
        raise OSError("the queue is broken")


class HostRunner(Stub):
    def __init__(self) -> None:
        super().__init__("host")


HOST = HostRunner()
NO_RUNNER = "a string"


def make_host() -> Runner:
    return HostRunner()


def make_nonsense() -> object:
    return object()


def fail_to_make() -> Runner:
    raise KeyError("HOST_URL")


def shipped(runner: Runner, missing: str | None = None) -> Shipped:
    return Shipped(lambda: runner, lambda: missing)


def forbidden(what: str) -> Callable[[], Runner]:
    def build() -> Runner:
        pytest.fail(f"{what} is not asked for")

    return build


def installed(name: str, attribute: str, module: str = __name__) -> EntryPoint:
    return EntryPoint(name, f"{module}:{attribute}", GROUP)


INLINE, TASK = Stub("inline"), Stub("task")
DEAD_TASK = Stub("task", available=False)
ALONE = Offer({"inline": shipped(INLINE)})
BOTH = Offer({"inline": shipped(INLINE), "task": shipped(TASK)})


def test_what_the_call_names_comes_before_what_is_configured() -> None:
    option, configured = Stub("option"), Stub("configured")

    assert resolve(option, configured, BOTH) is option


@pytest.mark.parametrize("nothing", [None, ""])
def test_what_is_configured_comes_before_the_automatic_choice(nothing: object) -> None:
    configured = Stub("configured")

    assert resolve(nothing, configured, BOTH) is configured


def test_of_itself_task_is_chosen() -> None:
    assert resolve(None, None, BOTH) is TASK


def test_inline_is_chosen_where_task_is_not_available() -> None:
    offer = Offer({"task": shipped(DEAD_TASK), "inline": shipped(INLINE)})

    assert resolve(None, None, offer) is INLINE


def test_task_is_chosen_even_if_dead_where_a_supervisor_is_configured() -> None:
    offer = Offer({"task": shipped(DEAD_TASK), "inline": shipped(INLINE)}, supervised=True)

    assert resolve(None, None, offer) is DEAD_TASK


def test_what_task_lacks_is_no_obstacle_to_inline() -> None:
    offer = Offer({"task": shipped(TASK, missing="no fork here"), "inline": shipped(INLINE)}, supervised=True)

    assert resolve(None, None, offer) is INLINE


@pytest.mark.parametrize("name", ["pgflow", "kubernetes_job"])
def test_other_runners_are_never_chosen_of_themselves(name: str) -> None:
    offer = Offer({name: Shipped(forbidden(name)), "inline": shipped(INLINE)}, [installed("host", "HOST")])

    assert resolve(None, None, offer) is INLINE


def test_where_nothing_can_be_chosen_that_is_said() -> None:
    with pytest.raises(Misconfigured, match="name one"):
        resolve(None, None, Offer({}))


def test_an_explicit_runner_is_not_asked_whether_it_is_available() -> None:
    assert resolve("inline", None, Offer({"inline": shipped(Falling("inline"))})).name() == "inline"


@pytest.mark.parametrize("attribute", ["HOST", "HostRunner", "make_host"])
def test_an_entry_point_is_a_runner_its_class_or_a_function_that_makes_it(attribute: str) -> None:
    offer = Offer({"inline": shipped(INLINE)}, [installed("host", attribute)])

    assert resolve("host", None, offer).name() == "host"


def test_a_path_names_a_runner_without_an_entry_point() -> None:
    assert resolve(None, f"{__name__}:HostRunner", ALONE).name() == "host"


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    offer = Offer({"inline": shipped(INLINE), "task": shipped(TASK)}, [installed("host", "HOST")])

    with pytest.raises(Misconfigured, match="no runner 'inlnie' here: name one of host, inline, task") as refused:
        resolve("inlnie", None, offer)

    assert refused.value.reason == "RunnerUnknown"


def test_a_wrong_option_is_refused_and_nothing_else_is_tried() -> None:
    with pytest.raises(Misconfigured, match="no runner 'wrong'"):
        resolve("wrong", "inline", BOTH)


def test_a_shipped_runner_without_its_extra_is_refused_with_the_remedy() -> None:
    offer = Offer({"pgflow": Shipped(forbidden("pgflow"), lambda: EXTRA), "inline": shipped(INLINE)})

    with pytest.raises(Misconfigured, match="'pgflow' cannot be used here: install it with") as refused:
        resolve("pgflow", None, offer)

    assert refused.value.reason == "RunnerUnknown"


def test_the_name_of_a_shipped_runner_finds_it() -> None:
    assert runner_for_name("task", BOTH.shipped) is TASK


@pytest.mark.parametrize("name", ["pgflow", "host", "", f"{__name__}:HOST"])
def test_a_name_of_no_shipped_runner_or_of_one_without_its_extra_finds_none(name: str) -> None:
    assert runner_for_name(name, {"inline": shipped(INLINE), "pgflow": shipped(Stub("pgflow"), missing=EXTRA)}) is None


def test_the_listing_says_of_each_runner_whether_it_is_available_and_why_not() -> None:
    offer = Offer(
        {
            "inline": shipped(INLINE),
            "task": shipped(DEAD_TASK),
            "pgflow": shipped(Explaining("pgflow", available=False)),
            "kubernetes_job": shipped(Stub("kubernetes_job"), missing="no kubeconfig"),
        },
        [installed("host", "HOST")],
    )

    assert listing(offer) == (
        Listed("inline", "shipped", available=True),
        Listed("task", "shipped", available=False, reason="it does not accept work right now"),
        Listed("pgflow", "shipped", available=False, reason="nobody listens: start a worker"),
        Listed(
            "kubernetes_job",
            "shipped",
            available=False,
            reason="runner 'kubernetes_job' cannot be used here: no kubeconfig",
        ),
        Listed("host", "entry point", available=True),
    )


@pytest.mark.parametrize(
    ("point", "words"),
    [
        pytest.param(installed("host", "Gone"), "cannot be imported: AttributeError", id="no attribute"),
        pytest.param(installed("host", "HOST", "no_such_module_here"), "must be importable", id="no module"),
        pytest.param(installed("host", "NO_RUNNER"), "enqueue is missing", id="no runner"),
        pytest.param(installed("host", "make_nonsense"), "enqueue is missing", id="makes no runner"),
        pytest.param(installed("host", "fail_to_make"), "KeyError: 'HOST_URL'", id="cannot be made"),
        pytest.param(installed("guest", "HOST"), "calls itself 'host'", id="another name"),
        pytest.param(installed("inline", "HOST"), "takes the name of a shipped one", id="a shipped name"),
    ],
)
def test_a_broken_entry_point_is_a_row_with_its_reason_and_refused_by_name(point: EntryPoint, words: str) -> None:
    offer = Offer({"inline": shipped(INLINE)}, [point])

    inline, row = listing(offer)

    assert inline.available
    assert (row.name, row.origin, row.available) == (point.name, "entry point", False)
    assert words in (row.reason or "")


def test_a_shipped_name_is_the_shipped_runner_whatever_a_package_says() -> None:
    assert resolve("inline", None, Offer({"inline": shipped(INLINE)}, [installed("inline", "HOST")])) is INLINE


def test_two_entry_points_of_one_name_are_both_refused() -> None:
    offer = Offer({}, [installed("host", "HOST"), installed("host", "HostRunner")])

    with pytest.raises(Misconfigured, match="has the name of another"):
        resolve("host", None, offer)

    assert [row.available for row in listing(offer)] == [False, False]


def test_a_runner_that_raises_when_it_is_asked_is_a_row_and_no_exception() -> None:
    (row,) = listing(Offer({"task": shipped(Falling("task"))}))

    assert row == Listed("task", "shipped", available=False, reason="OSError: the queue is broken")
