"""What people and programs read about a request, for everything that can be known about it."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geogenius.api.names import RequestState
from geogenius.api.refusals import explained
from geogenius.api.status import status_changed, status_of
from geogenius.api.v1alpha1 import ImportRequestStatus
from geogenius.api.view import RequestView
from geogenius.domain.enqueued import EnqueueState
from geogenius.domain.errors import DatabaseUnavailable, InvalidRequest, ManifestInvalid
from geogenius.domain.observation import Absent, Ended, Foreign, Observation, Running, Waiting
from geogenius.domain.prepared import Refusal, Refused
from geogenius.domain.run import ExecutorId, Run, RunError, RunState, workload_name
from tests.support.builders import NOON, RELEASE_ID, RUN_ID, a_run

EXECUTOR = ExecutorId(UUID("99999999-9999-9999-9999-999999999999"))
NOW = NOON + timedelta(minutes=10)
TYPES = ["Accepted", "Launched", "Succeeded", "Stalled"]


def started(state: RunState = RunState.STAGING, **changes: Any) -> Run:  # noqa: ANN401  any field of a run
    facts = {
        "state": state,
        "enqueue_state": EnqueueState.ACCEPTED,
        "executor_id": EXECUTOR,
        "execution_started_at": NOON + timedelta(seconds=5),
        "last_heartbeat_at": NOW - timedelta(seconds=20),
    }
    return a_run(**(facts | changes))


def ended(state: RunState, **changes: Any) -> Run:  # noqa: ANN401  any field of a run
    return started(state, **({"completed_at": NOON + timedelta(minutes=8)} | changes))


def failed(reason: str, message: str, phase: str = "staging") -> Run:
    return ended(RunState.FAILED, error=RunError(phase, reason, message))


def seen(view: RequestView, previous: dict[str, object] | None = None, now: datetime = NOW) -> dict[str, Any]:
    return status_of(view, previous or {}, now)


def of(run: Run, observation: Observation | None = None, now: datetime = NOW) -> dict[str, Any]:
    return seen(RequestView(1, run, observation=observation), now=now)


def verdict(status: dict[str, Any], kind: str) -> tuple[str, str]:
    (condition,) = [condition for condition in status["conditions"] if condition["type"] == kind]
    return condition["status"], condition["reason"]


def message(status: dict[str, Any], kind: str) -> str:
    (condition,) = [condition for condition in status["conditions"] if condition["type"] == kind]
    return str(condition["message"])


VIEWS = [
    pytest.param(
        RequestView(1),
        "Pending",
        [("Unknown", "Waiting"), ("Unknown", "Waiting"), ("Unknown", "Waiting"), ("False", "NotStarted")],
        id="first look",
    ),
    pytest.param(
        RequestView(1, unavailable=DatabaseUnavailable("no connection")),
        "Pending",
        [
            ("Unknown", "DatabaseUnavailable"),
            ("Unknown", "Waiting"),
            ("Unknown", "DatabaseUnavailable"),
            ("False", "NotStarted"),
        ],
        id="catalog not reachable",
    ),
    pytest.param(
        RequestView(1, refusal=ManifestInvalid("spec.manifest: sources[0].artifacts[0].sha256: is required")),
        "Failed",
        [
            ("False", "ManifestInvalid"),
            ("False", "NotAccepted"),
            ("False", "ManifestInvalid"),
            ("False", "NotStarted"),
        ],
        id="manifest invalid",
    ),
    pytest.param(
        RequestView(1, refusal=Refused(Refusal.LIVE_IMPORT, RELEASE_ID, RUN_ID)),
        "Failed",
        [("False", "LiveImport"), ("False", "NotAccepted"), ("False", "LiveImport"), ("False", "NotStarted")],
        id="refused by the catalog",
    ),
    pytest.param(
        RequestView(1, a_run()),
        "Launching",
        [("True", "Registered"), ("Unknown", "Launching"), ("Unknown", "Launching"), ("False", "NotStarted")],
        id="registered",
    ),
    pytest.param(
        RequestView(1, a_run(enqueue_state=EnqueueState.UNKNOWN, enqueue_reason="ReadTimeout: no answer in 10 s")),
        "Launching",
        [("True", "Registered"), ("Unknown", "ReadTimeout"), ("Unknown", "Launching"), ("False", "NotStarted")],
        id="answer lost",
    ),
    pytest.param(
        RequestView(1, a_run(enqueue_state=EnqueueState.UNKNOWN)),
        "Launching",
        [("True", "Registered"), ("Unknown", "OutcomeUnknown"), ("Unknown", "Launching"), ("False", "NotStarted")],
        id="answer lost and no reason",
    ),
    pytest.param(
        RequestView(1, a_run(enqueue_state=EnqueueState.NOT_ENQUEUED, enqueue_reason="WaitingForQuota: exceeded")),
        "Launching",
        [("True", "Registered"), ("False", "WaitingForQuota"), ("Unknown", "Launching"), ("False", "NotStarted")],
        id="refused for now",
    ),
    pytest.param(
        RequestView(1, a_run(enqueue_state=EnqueueState.ACCEPTED)),
        "Launching",
        [("True", "Registered"), ("True", "Launched"), ("Unknown", "Launching"), ("False", "NotStarted")],
        id="accepted",
    ),
    pytest.param(
        RequestView(
            1,
            a_run(enqueue_state=EnqueueState.ACCEPTED),
            observation=Waiting("u", "ImagePullBackOff", "cannot pull"),
        ),
        "Launching",
        [("True", "Registered"), ("True", "ImagePullBackOff"), ("Unknown", "Launching"), ("False", "NotStarted")],
        id="pod waits",
    ),
    pytest.param(
        RequestView(1, started()),
        "Running",
        [("True", "Registered"), ("True", "Started"), ("Unknown", "Running"), ("False", "Alive")],
        id="running",
    ),
    pytest.param(
        RequestView(1, started(enqueue_state=EnqueueState.UNKNOWN, enqueue_reason="ReadTimeout: no answer")),
        "Running",
        [("True", "Registered"), ("True", "Started"), ("Unknown", "Running"), ("False", "Alive")],
        id="running though the answer was lost",
    ),
    pytest.param(
        RequestView(1, started(stale_after=timedelta(seconds=19))),
        "Stalled",
        [("True", "Registered"), ("True", "Started"), ("Unknown", "Running"), ("True", "HeartbeatOverdue")],
        id="stalled",
    ),
    pytest.param(
        RequestView(1, started(RunState.PUBLISHING)),
        "Publishing",
        [("True", "Registered"), ("True", "Started"), ("Unknown", "Running"), ("False", "Alive")],
        id="publishing",
    ),
    pytest.param(
        RequestView(1, ended(RunState.COMPLETED)),
        "Succeeded",
        [("True", "Registered"), ("True", "Started"), ("True", "Completed"), ("False", "Finished")],
        id="completed",
    ),
    pytest.param(
        RequestView(1, ended(RunState.COMPLETED, published=True)),
        "Succeeded",
        [("True", "Registered"), ("True", "Started"), ("True", "Published"), ("False", "Finished")],
        id="published",
    ),
    pytest.param(
        RequestView(1, failed("DataRefused", "states.geojson: not JSON at byte 17")),
        "Failed",
        [("True", "Registered"), ("True", "Started"), ("False", "DataRefused"), ("False", "Finished")],
        id="failed",
    ),
    pytest.param(
        RequestView(
            1,
            a_run(
                state=RunState.FAILED,
                completed_at=NOON,
                error=RunError("enqueue", "Forbidden", "jobs.batch is forbidden: exceeded nothing"),
            ),
        ),
        "Failed",
        [("True", "Registered"), ("False", "Forbidden"), ("False", "Forbidden"), ("False", "Finished")],
        id="never launched",
    ),
    pytest.param(
        RequestView(
            1,
            a_run(
                state=RunState.FAILED,
                completed_at=NOON,
                enqueue_state=EnqueueState.ACCEPTED,
                error=RunError("enqueue", "WorkloadLost", "Job maps/x no longer exists"),
            ),
        ),
        "Failed",
        [("True", "Registered"), ("True", "Launched"), ("False", "WorkloadLost"), ("False", "Finished")],
        id="launched and lost",
    ),
]


@pytest.mark.parametrize(("view", "state", "verdicts"), VIEWS)
def test_the_status_says_what_is_known(view: RequestView, state: str, verdicts: list[tuple[str, str]]) -> None:
    status = seen(view)

    assert status["state"] == state
    assert [verdict(status, kind) for kind in TYPES] == verdicts
    assert status["finished"] == (verdicts[2][0] != "Unknown")
    assert ("completionTime" in status) == status["finished"]


BAD_INPUT = [
    pytest.param("DataRefused", "states.geojson: not JSON at byte 17: expected ':'", id="not JSON"),
    pytest.param("DataRefused", "states.geojson: a FeatureCollection is needed, this is a Feature", id="no collection"),
    pytest.param("ArtifactMismatch", "states.geojson: sha256 is ab…, the manifest says cd…", id="wrong checksum"),
    pytest.param("ArtifactMissing", "states.geojson: no such file was supplied", id="missing file"),
    pytest.param("SourceUnavailable", "https://data.example/x: no answer in 10 s", id="unreachable URL"),
    pytest.param("ProviderUnknown", "no provider is called geojsn", id="unknown provider"),
    pytest.param("TooManyRejects", "1 row rejected, 0 allowed; row 7: blank code", id="blank code"),
    pytest.param("TooManyRejects", "1 row rejected, 0 allowed; row 8: code DE twice", id="duplicate code"),
    pytest.param("TooManyRejects", "1 row rejected, 0 allowed; row 9: a Point is no area", id="non-polygon"),
    pytest.param("TooManyRejects", "1 row rejected, 0 allowed; row 10: NaN", id="NaN coordinates"),
]


@pytest.mark.parametrize(("reason", "sentence"), BAD_INPUT)
def test_bad_input_ends_failed_in_the_words_of_the_run(reason: str, sentence: str) -> None:
    status = of(failed(reason, sentence))

    assert status["state"] == "Failed"
    assert status["finished"]
    assert not status["published"]
    assert status["phase"] == "staging"
    assert verdict(status, "Succeeded") == ("False", reason)
    assert message(status, "Succeeded") == sentence


@pytest.mark.parametrize("refusal", list(Refusal))
def test_every_refusal_of_the_catalog_has_a_reason_and_a_sentence(refusal: Refusal) -> None:
    reason, sentence = explained(Refused(refusal, RELEASE_ID, RUN_ID))

    assert reason.isalpha()
    assert reason[0].isupper()
    assert " " in sentence
    assert str(RUN_ID) in sentence
    assert "None" not in explained(Refused(refusal, None, None))[1]


def test_an_error_without_a_usable_word_still_has_a_reason() -> None:
    assert verdict(of(failed("no word", "boom")), "Succeeded") == ("False", "Failed")
    assert verdict(seen(RequestView(1, refusal=InvalidRequest("x", reason="?"))), "Accepted") == (
        "False",
        "NotAccepted",
    )
    assert verdict(of(ended(RunState.FAILED)), "Succeeded") == ("False", "Failed")


def test_the_words_of_an_uncertain_start_reach_the_condition() -> None:
    unknown = a_run(enqueue_state=EnqueueState.UNKNOWN, enqueue_reason="ReadTimeout: no answer: 10 s")

    assert message(of(unknown), "Launched") == "no answer: 10 s"


@pytest.mark.parametrize(
    "observation",
    [
        None,
        Absent(),
        Waiting("u", "", ""),
        Running("u"),
        Ended("u", succeeded=True, reason="", message=""),
        Foreign("x"),
    ],
)
def test_an_accepted_start_stays_true_whatever_is_seen(observation: Observation | None) -> None:
    status = of(a_run(enqueue_state=EnqueueState.ACCEPTED), observation)

    assert verdict(status, "Launched") == ("True", "Launched")
    assert message(status, "Launched")


def test_a_status_mirrors_the_run() -> None:
    run = ended(
        RunState.COMPLETED,
        published=True,
        attempt=2,
        rejected=3,
        progress={"rows": 4596, "rejected": 2, "bytes": 0, "percent": 98},
        metrics={"bytes": 34_600_000},
        execution_started_at=NOON + timedelta(seconds=5, microseconds=123456),
    )

    status = seen(RequestView(4, run))

    assert {key: value for key, value in status.items() if key != "conditions"} == {
        "observedGeneration": 4,
        "state": "Succeeded",
        "phase": "completed",
        "runId": str(RUN_ID),
        "attempt": 2,
        "jobName": workload_name(RUN_ID),
        "releaseId": str(RELEASE_ID),
        "published": True,
        "progress": {"percent": 100, "rows": 4596, "rejected": 3, "bytes": 34_600_000},
        "startTime": "2030-06-01T12:00:05Z",
        "completionTime": "2030-06-01T12:08:00Z",
        "finished": True,
    }
    assert {condition["observedGeneration"] for condition in status["conditions"]} == {4}


def test_progress_is_what_the_executor_reported() -> None:
    progress = {"rows": 10, "rejected": 1, "bytes": 500, "bytes_total": 900, "percent": 42}

    assert of(started(progress=progress))["progress"] == {"percent": 42, "rows": 10, "rejected": 1, "bytes": 500}


def test_a_run_that_was_never_heard_of_again_counts_from_its_start() -> None:
    silent = started(last_heartbeat_at=None, stale_after=timedelta(minutes=5))

    assert verdict(of(silent), "Stalled") == ("True", "HeartbeatOverdue")
    assert verdict(of(silent, now=NOON + timedelta(minutes=4)), "Stalled") == ("False", "Alive")


def test_the_window_itself_is_not_overdue() -> None:
    run = started(stale_after=timedelta(seconds=20))

    assert verdict(of(run), "Stalled") == ("False", "Alive")
    assert verdict(of(run, now=NOW + timedelta(seconds=1)), "Stalled") == ("True", "HeartbeatOverdue")


@pytest.mark.parametrize(("view", "state", "verdicts"), VIEWS)
def test_looking_again_changes_nothing(view: RequestView, state: str, verdicts: list[tuple[str, str]]) -> None:
    del state, verdicts
    first = seen(view)

    assert not status_changed(first, seen(view, first, NOW + timedelta(microseconds=1)))


def test_the_end_of_a_refused_request_keeps_its_time() -> None:
    view = RequestView(1, refusal=InvalidRequest("spec: owner: must not be blank"))
    first = seen(view)

    assert first["completionTime"] == "2030-06-01T12:10:00Z"
    assert seen(view, first, NOW + timedelta(hours=1)) == first


def test_a_transition_is_dated_and_the_rest_keeps_its_dates() -> None:
    first = seen(RequestView(1, a_run()), now=NOON)
    later = seen(RequestView(1, started()), first)
    times = {condition["type"]: condition["lastTransitionTime"] for condition in later["conditions"]}

    assert times["Launched"] == "2030-06-01T12:10:00Z"
    assert {times["Accepted"], times["Succeeded"], times["Stalled"]} == {"2030-06-01T12:00:00Z"}


@pytest.mark.parametrize(
    "previous", [{"conditions": None}, {"conditions": "x"}, {"conditions": [7]}, {"completionTime": 7}]
)
def test_a_status_that_cannot_be_read_is_written_anew(previous: dict[str, object]) -> None:
    assert seen(RequestView(1, ended(RunState.COMPLETED)), previous) == seen(RequestView(1, ended(RunState.COMPLETED)))


def test_the_order_of_conditions_is_no_change() -> None:
    status = seen(RequestView(1, a_run()))
    turned = status | {"conditions": status["conditions"][::-1]}

    assert not status_changed(status, turned)
    assert status_changed(status, status | {"conditions": status["conditions"][:3]})
    assert status_changed(status, status | {"state": "Failed"})
    assert status_changed({}, status)


NUMBERS = st.dictionaries(st.sampled_from(["rows", "rejected", "bytes", "percent"]), st.integers(-(2**70), 2**70))
TEXTS = st.text(max_size=3000)
RUNS = st.builds(
    lambda state, enqueue, reason, error, numbers, metrics: replace(
        started(state),
        enqueue_state=enqueue,
        enqueue_reason=reason,
        error=error,
        progress=numbers,
        metrics=metrics,
        release=reason or "r",
    ),
    st.sampled_from(RunState),
    st.sampled_from(EnqueueState),
    st.none() | TEXTS,
    st.none() | st.builds(RunError, TEXTS, TEXTS, TEXTS),
    NUMBERS,
    NUMBERS,
)
ANY_VIEW = st.builds(
    RequestView,
    generation=st.integers(0, 2**31),
    run=st.none() | RUNS | RUNS.map(lambda run: replace(run, executor_id=None)),
    refusal=st.none() | TEXTS.map(InvalidRequest) | st.builds(Refused, st.sampled_from(Refusal), st.none(), st.none()),
    unavailable=st.none() | TEXTS.map(DatabaseUnavailable),
    observation=st.none() | st.builds(Waiting, TEXTS, TEXTS, TEXTS),
)


@settings(max_examples=300)
@given(ANY_VIEW)
def test_a_status_is_small_complete_and_fits_its_schema(view: RequestView) -> None:
    status = seen(view)

    assert len(json.dumps(status, ensure_ascii=False).encode()) <= 8192
    assert [condition["type"] for condition in status["conditions"]] == TYPES
    assert all(len(condition["message"]) <= 1024 for condition in status["conditions"])
    assert ImportRequestStatus.model_validate(status).state in RequestState
