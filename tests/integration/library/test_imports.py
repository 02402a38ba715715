"""Registered and committed, then enqueued, then settled: behaviours 10 to 17 of the library."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from geogenius.db import Database
from geogenius.domain.enqueued import Accepted, EnqueueState, NotEnqueued, OutcomeUnknown
from geogenius.domain.errors import DatabaseUnavailable, InvalidRequest, ManifestInvalid
from geogenius.domain.manifest import Manifest
from geogenius.domain.prepared import Existing, Refusal, Refused
from geogenius.domain.run import CancelAnswer, ExecutorId, Run, RunId, RunState, VerificationGates
from geogenius.launcher.launch import LeftPending, Rejected, Started
from geogenius.library import (
    Context,
    ImportOptions,
    UnknownRun,
    artifacts,
    cancel,
    guidance,
    import_release,
    retry_failed,
    runs,
    status,
)
from geogenius.manifest import normal_form
from tests.support.builders import RUN_ID
from tests.support.digest import digest
from tests.support.geojson import a_manifest
from tests.support.library import Fault, FaultyDatabase, Scripted

Sql = psycopg.Connection[psycopg.rows.DictRow]
Reviewed = Callable[..., Manifest]
Build = Callable[..., tuple[Scripted, Context]]
REFUSED = NotEnqueued("Forbidden", "jobs.batch is forbidden")
BUSY = NotEnqueued("WaitingForQuota", "exceeded quota", retry_after=7.0)
EXECUTOR = ExecutorId(RUN_ID)
MINE = ImportOptions(owner="me")


def read(context: Context, run_id: RunId) -> Run:
    run = status(context, run_id)
    assert run is not None
    return run


def started(context: Context, manifest: Manifest, options: ImportOptions = MINE) -> RunId:
    answer = import_release(context, manifest, options)
    assert isinstance(answer, Started), answer
    return answer.run_id


def failed(build: Build, manifest: Manifest | None = None) -> RunId:
    """A run that a runner refused."""
    _, context = build(REFUSED)
    answer = import_release(context, manifest or a_manifest(), MINE)
    assert isinstance(answer, Rejected)
    return answer.run_id


def test_the_registration_is_committed_before_the_runner_is_asked(conninfo: str, scripted: Build) -> None:
    runner, context = scripted(Accepted())
    seen: list[object] = []

    def look(run_id: RunId) -> None:
        with psycopg.connect(conninfo, autocommit=True) as other:
            seen.extend(other.execute("select state from geogenius.import_run where id = %s", [run_id]).fetchall())

    runner.meanwhile = look
    run_id = started(context, a_manifest())
    assert seen == [("pending",)]
    run = read(context, run_id)
    assert (run.runner, run.enqueue_state) == ("scripted", EnqueueState.ACCEPTED)


def test_publish_and_window_reach_the_runner_and_the_run(scripted: Build) -> None:
    runner, context = scripted(Accepted())
    options = ImportOptions(owner="me", publish=True, stale_after=timedelta(minutes=2), reject_limit=3)
    run = read(context, started(context, a_manifest(), options))
    assert runner.asked == [(run.run_id, {"publish": True, "stale_after_seconds": 120})]
    assert (run.publish, run.stale_after, run.reject_limit) == (True, timedelta(minutes=2), 3)


@pytest.mark.parametrize("said", [RuntimeError("no workers"), "no workers"], ids=["exception", "text"])
def test_a_plain_refusal_of_the_older_contract_fails_the_attempt_and_a_retry_makes_the_second(
    scripted: Build, said: object
) -> None:
    _, context = scripted(said, returned=True)
    answer = import_release(context, a_manifest(), MINE)
    assert isinstance(answer, Rejected)
    assert answer.recorded
    run = read(context, answer.run_id)
    assert (run.state, run.attempt) == (RunState.FAILED, 1)
    assert run.error is not None
    assert (run.error.phase, run.error.reason, run.error.message) == ("enqueue", "RunnerRefused", "no workers")
    assert "retry it" in guidance(answer)
    _, willing = scripted(Accepted())
    again = retry_failed(willing, answer.run_id, a_manifest(), MINE)
    assert isinstance(again, Started)
    assert read(willing, again.run_id).attempt == 2


def test_a_refusal_that_cannot_be_recorded_says_so_with_both_causes(faulty: FaultyDatabase) -> None:
    runner = Scripted([REFUSED])
    context = Context.on(faulty, runner)
    runner.meanwhile = lambda _: setattr(faulty, "faults", ("lost before",) * 3)
    answer = import_release(context, a_manifest(), MINE)
    assert isinstance(answer, Rejected)
    assert (answer.recorded, answer.error.reason, answer.why_not) == (False, "Forbidden", "cut off")
    assert "has failed" not in guidance(answer)
    run = read(context, answer.run_id)
    assert (run.state, run.enqueue_state) == (RunState.PENDING, EnqueueState.INTENDED)


def test_a_refused_redelivery_leaves_the_live_attempt_pending(scripted: Build) -> None:
    _, context = scripted(OutcomeUnknown("Reset", "cut off"), REFUSED)
    first = import_release(context, a_manifest(), MINE)
    assert isinstance(first, LeftPending)
    second = import_release(context, a_manifest(), MINE)
    assert isinstance(second, LeftPending)
    assert (second.run_id, second.answer) == (first.run_id, REFUSED)
    run = read(context, first.run_id)
    assert (run.state, run.enqueue_state, run.error) == (RunState.PENDING, EnqueueState.UNKNOWN, None)
    assert "the same owner" in guidance(second)


def test_a_refused_redelivery_leaves_an_attempt_alone_that_is_executed(scripted: Build, database: Database) -> None:
    runner, context = scripted(Accepted(), REFUSED)
    run_id = started(context, a_manifest())
    with database.connection() as connection:
        connection.execute("select claim_import_execution(%s, %s)", [run_id, EXECUTOR])
    assert isinstance(import_release(context, a_manifest(), MINE), LeftPending)
    run = read(context, run_id)
    assert (run.state, run.executor_id, len(runner.asked)) == (RunState.PENDING, EXECUTOR, 2)


@pytest.mark.parametrize("raised", [RuntimeError("a bug"), TimeoutError(), DatabaseUnavailable("the queue is gone")])
def test_what_a_runner_raises_leaves_new_retried_and_redelivered_runs_pending(
    scripted: Build, raised: Exception
) -> None:
    lost = failed(scripted, a_manifest(release="retried"))
    _, context = scripted(raised)
    answers = [
        import_release(context, a_manifest(), MINE),
        import_release(context, a_manifest(), MINE),
        retry_failed(context, lost, a_manifest(release="retried"), MINE),
    ]
    for answer in answers:
        assert isinstance(answer, LeftPending)
        assert isinstance(answer.answer, OutcomeUnknown)
        assert answer.answer.reason == "RunnerRaised"
        assert "not known" in guidance(answer)
        run = read(context, answer.run_id)
        assert (run.state, run.enqueue_state) == (RunState.PENDING, EnqueueState.UNKNOWN)


def test_a_temporary_refusal_is_kept_with_its_reason_and_asked_again(scripted: Build) -> None:
    _, context = scripted(BUSY, Accepted())
    first = import_release(context, a_manifest(), MINE)
    assert isinstance(first, LeftPending)
    assert first.retry_after == 7.0
    assert read(context, first.run_id).enqueue_reason == "WaitingForQuota: exceeded quota"
    assert started(context, a_manifest()) == first.run_id


def test_an_import_is_complete_when_the_inline_runner_returns(context: Context, reviewed: Reviewed, sql: Sql) -> None:
    manifest = reviewed()
    run_id = started(context, manifest, replace(MINE, publish=True))
    run = read(context, run_id)
    assert (run.state, run.runner, run.published) == (RunState.COMPLETED, "inline", True)
    files = [(file.logical_name, file.provider, file.observed) for file in artifacts(context, run_id)]
    assert files == [("areas-2030.1.geojson", "geojson", True)]
    registered = "select t.key, w.rank from release_area_type w join area_type t on t.id = w.area_type_id"
    assert sql.execute(registered.encode()).fetchall() == [{"key": "country", "rank": 10}]
    assert sql.execute("select key from authority").fetchall() == [{"key": "iso"}]
    assert sql.execute("select source_key, license from source").fetchall() == [
        {"source_key": "naturalearth", "license": "CC0-1.0"}
    ]


def test_importing_twice_makes_no_duplicates_and_is_the_same_run(
    context: Context, reviewed: Reviewed, sql: Sql
) -> None:
    run_id = started(context, reviewed())
    again = import_release(context, normal_form(reviewed()), MINE)
    assert again == Existing(run_id, read(context, run_id).release_id, 1)
    assert sql.execute("select count(*) as many from release_area").fetchall() == [{"many": 4}]
    assert [run.run_id for run in runs(context, "world")] == [run_id]


def test_the_same_owner_is_given_the_same_run_and_another_one_is_not_even_enqueued(scripted: Build) -> None:
    runner, context = scripted(Accepted())
    run_id = started(context, a_manifest())
    assert started(context, a_manifest()) == run_id
    refused = import_release(context, a_manifest(), ImportOptions(owner="you"))
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.run_id) == (Refusal.LIVE_IMPORT, run_id)
    assert [asked for asked, _ in runner.asked] == [run_id, run_id]
    assert read(context, run_id).attempt == 1


@pytest.mark.parametrize(
    ("option", "reason"), [({}, Refusal.FAILED), ({"name_property": "name"}, Refusal.MANIFEST_CHANGED)]
)
def test_after_a_failure_only_a_retry_makes_the_second_attempt(
    scripted: Build, sql: Sql, option: dict[str, str], reason: Refusal
) -> None:
    run_id = failed(scripted)
    runner, context = scripted(Accepted())
    before = digest(sql)
    refused = import_release(context, a_manifest(**option), MINE)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.run_id, runner.asked) == (reason, run_id, [])
    assert digest(sql) == before
    retried = retry_failed(context, run_id, a_manifest(**option), MINE)
    assert isinstance(retried, Started)
    assert read(context, retried.run_id).attempt == 2


@pytest.mark.parametrize(
    ("reason", "retry"),
    [
        (Refusal.NOT_FOUND, lambda context, _: retry_failed(context, RUN_ID, a_manifest(), MINE)),
        (Refusal.NOT_FAILED, lambda context, live: retry_failed(context, live, a_manifest(), MINE)),
        (Refusal.CANDIDATE_MISMATCH, lambda context, live: retry_failed(context, live, a_manifest(release="b"), MINE)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_retry_that_cannot_be_is_a_typed_answer(
    scripted: Build, reason: Refusal, retry: Callable[[Context, RunId], object]
) -> None:
    runner, context = scripted(Accepted())
    live = started(context, a_manifest())
    answer = retry(context, live)
    assert isinstance(answer, Refused)
    assert answer.reason is reason
    assert len(runner.asked) == 1


def test_a_retry_whose_answer_was_lost_is_given_its_attempt_again(scripted: Build) -> None:
    run_id = failed(scripted)
    runner, context = scripted(Accepted())
    first = retry_failed(context, run_id, a_manifest(), MINE)
    assert isinstance(first, Started)
    assert retry_failed(context, run_id, a_manifest(), MINE) == first
    assert [asked for asked, _ in runner.asked] == [first.run_id, first.run_id]


def test_a_published_release_is_protected(context: Context, reviewed: Reviewed) -> None:
    run_id = started(context, reviewed(), replace(MINE, publish=True))
    release_id = read(context, run_id).release_id
    assert import_release(context, reviewed(), MINE) == Refused(Refusal.PROTECTED, release_id, None)


@pytest.mark.parametrize(
    "manifest",
    [{}, {"collection": "world"}, {**normal_form(a_manifest()), "provider": "nobody"}],
    ids=["empty", "parts missing", "unknown provider"],
)
def test_what_is_no_manifest_is_a_typed_error_and_writes_nothing(
    scripted: Build, sql: Sql, manifest: dict[str, object]
) -> None:
    runner, context = scripted(Accepted())
    before = digest(sql)
    with pytest.raises(ManifestInvalid):
        import_release(context, manifest)
    assert (digest(sql), runner.asked) == (before, [])


@pytest.mark.parametrize("gates", [VerificationGates({"counrty": 1}), VerificationGates(required_types=("counrty",))])
def test_a_gate_of_a_type_that_the_manifest_does_not_have_is_refused_at_once(
    scripted: Build, gates: VerificationGates
) -> None:
    _, context = scripted(Accepted())
    with pytest.raises(InvalidRequest, match="counrty"):
        import_release(context, a_manifest(), ImportOptions(gates=gates))


def test_a_release_that_does_not_pass_its_gates_is_a_recorded_failure(context: Context, reviewed: Reviewed) -> None:
    gates = VerificationGates({"country": 5}, ("country",), 10)
    run = read(context, started(context, reviewed(), replace(MINE, gates=gates)))
    assert run.gates == gates
    assert run.error is not None
    assert (run.error.reason, "at least 5 are required" in run.error.message) == ("VerificationFailed", True)


@pytest.mark.parametrize("fault", ["lost before", "lost after"])
def test_a_registration_whose_reply_was_lost_is_asked_for_again(faulty: FaultyDatabase, fault: Fault) -> None:
    runner = Scripted([REFUSED])
    context = Context.on(faulty, runner)
    faulty.faults = (fault,)
    answer = import_release(context, a_manifest(), MINE)
    assert isinstance(answer, Rejected)
    assert answer.recorded, "nobody else can have been asked to start it"
    assert [run.run_id for run in runs(context, "world")] == [answer.run_id]


def test_a_catalog_that_stays_silent_is_raised_and_nothing_is_started(faulty: FaultyDatabase) -> None:
    runner = Scripted([Accepted()])
    faulty.dark = True
    with pytest.raises(DatabaseUnavailable):
        import_release(Context.on(faulty, runner), a_manifest())
    assert runner.asked == []


def test_a_registration_that_never_gets_its_reply_is_one_run(faulty: FaultyDatabase) -> None:
    runner = Scripted([Accepted()])
    context = Context.on(faulty, runner)
    faulty.faults = ("lost after", "lost after")
    with pytest.raises(DatabaseUnavailable):
        import_release(context, a_manifest(), MINE)
    assert (len(runs(context, "world")), runner.asked) == (1, [])


def test_the_run_is_named_when_the_catalog_falls_silent_after_its_registration(faulty: FaultyDatabase) -> None:
    runner = Scripted([Accepted()])
    context = Context.on(faulty, runner)
    faulty.faults = ("last",)
    answer = import_release(context, a_manifest(), MINE)
    assert isinstance(answer, LeftPending)
    assert isinstance(answer.answer, NotEnqueued)
    faulty.dark = False
    assert ([run.run_id for run in runs(context, "world")], runner.asked) == ([answer.run_id], [])


def test_the_run_is_named_when_the_answer_of_the_runner_cannot_be_recorded(faulty: FaultyDatabase) -> None:
    runner = Scripted([Accepted()])
    context = Context.on(faulty, runner)
    runner.meanwhile = lambda _: setattr(faulty, "dark", True)
    answer = import_release(context, a_manifest(), MINE)
    assert isinstance(answer, LeftPending)
    assert isinstance(answer.answer, OutcomeUnknown)
    faulty.dark, runner.meanwhile = False, lambda _: None
    assert started(context, a_manifest()) == answer.run_id


def test_a_wish_to_stop_is_kept_until_the_run_has_ended(scripted: Build) -> None:
    _, context = scripted(Accepted())
    run_id = started(context, a_manifest())
    assert cancel(context, run_id) is CancelAnswer.REQUESTED
    first = read(context, run_id).cancel_requested_at
    assert first is not None
    assert cancel(context, run_id) is CancelAnswer.REQUESTED
    assert read(context, run_id).cancel_requested_at == first
    assert cancel(context, failed(scripted, a_manifest(release="lost"))) is CancelAnswer.FAILED
    assert cancel(context, RUN_ID) == UnknownRun(RUN_ID)


def test_what_is_asked_of_an_unknown_run_is_nothing(scripted: Build) -> None:
    _, context = scripted(Accepted())
    assert (status(context, RUN_ID), artifacts(context, RUN_ID), runs(context, "nowhere")) == (None, [], [])
