"""Random sequences of life-cycle calls from several connections, compared with a model after every step."""

import re
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from geogenius.domain.run import NEXT_PHASE, RunState
from tests.support.catalog import SHA, a_manifest
from tests.support.databases import PostgresCluster
from tests.support.life_model import World
from tests.support.matrix import full, write_evidence

KINDS = [{"key": "country", "rank": 10, "requires_geometry": False}]
WORD = re.compile("[a-z]+(_[a-z]+)*")
RELEASES = ("r1", "r2", "r3")
EXAMPLES, STEPS = (150, 80) if full() else (25, 50)
RUNS = """
select i.id, i.state::text as state, i.attempt, l.executor_id
from import_run i left join import_run_lease l on l.run_id = i.id
"""
ENDED = "select id, md5(i::text) as print from import_run i where completed_at is not null"
LIVE_TWICE = "select release_id from import_run where completed_at is null group by 1 having count(*) > 1"
LEASES = """
select coalesce(i.id, l.run_id) as run from import_run i full join import_run_lease l on l.run_id = i.id
where (i.completed_at is null) <> (l.run_id is not null)
"""
POINTER = """
select r.release_key, p.release_key as previous
from publication o join release r on r.id = o.release_id left join release p on p.id = o.previous_release_id
where r.completed_at is not null and r.retired_at is null and r.collection_id = o.collection_id
"""
ATTACHED = """
select count(*) as many from pg_inherits i join pg_class c on c.oid = i.inhrelid
where c.relname ~ '^boundary_[0-9a-f]{32}$'
"""
STANDALONE = """
select count(*) as many from pg_class
where relname ~ '^(boundary|staging)_[0-9a-f]{32}$' and not relispartition and relkind = 'r'
"""

AREA = """
insert into {} (artifact, position, authority, area_type, code, attributes)
values ('countries.geojson', 1, 'iso', 'country', 'DE', '{{}}')
"""

Steps = dict[str, tuple[int, int]]
"""By function: how often it was called, and how often it refused."""


def manifest(release: str, variant: str) -> dict[str, Any]:
    return a_manifest(release=release, area_types=KINDS, options={"variant": variant})


class Life(RuleBasedStateMachine):
    """Each rule is one call through one of the connections; what it answers is what the model answers."""

    cluster: PostgresCluster
    template: str
    counted: Steps

    def __init__(self) -> None:
        super().__init__()
        self.name = self.cluster.create(self.template)
        self.connections = [self.connect("geogenius_writer") for _ in range(3)]
        self.observer = self.connect("postgres")
        self.world = World()
        self.fences: list[tuple[UUID, UUID]] = [(uuid4(), uuid4())]
        self.ended: dict[UUID, str] = {}

    def connect(self, user: str) -> psycopg.Connection[Any]:
        conninfo = self.cluster.conninfo(self.name).replace("user=postgres", f"user={user}")
        options = "-c search_path=geogenius,public"
        return psycopg.connect(conninfo, autocommit=True, row_factory=dict_row, options=options)

    def teardown(self) -> None:
        for connection in (*self.connections, self.observer):
            connection.close()
        self.cluster.drop(self.name)

    def call(self, through: int, question: str, *arguments: object) -> Any:  # noqa: ANN401  any value
        """The one value of a call, or the word with which it was refused."""
        name = re.findall(r"(\w+)\(", question)[-1]
        calls, refusals = self.counted.get(name, (0, 0))
        self.counted[name] = calls + 1, refusals
        try:
            row = self.connections[through].execute(f"select {question} as answer".encode(), arguments).fetchall()
        except psycopg.Error as refused:
            word = refused.diag.message_detail
            if word is None or not WORD.fullmatch(word):
                raise
            self.counted[name] = calls + 1, refusals + 1
            return word
        return row[0]["answer"] if row else None

    def claim_document(self, owner: str, run_id: UUID) -> Jsonb:
        return Jsonb({"run_id": str(run_id), "owner": owner, "runner_backend": "inline"})

    through = st.integers(0, 2)
    run = st.integers(0, 50)
    variant = st.sampled_from(["a", "a", "a", "b"])
    owner = st.sampled_from(["maps/world", "maps/world", "other/world"])

    def pick(self, run: int) -> tuple[UUID, UUID]:
        return self.fences[-1 - run % len(self.fences)]

    @initialize()
    def nothing_yet(self) -> None:
        self.world.prepare("r1", "a", "maps/world", first := uuid4())
        question = "(prepare_import(%s, %s)).reason"
        assert (
            self.call(0, question, Jsonb(manifest("r1", "a")), self.claim_document("maps/world", first)) == "registered"
        )
        self.fences.append((first, uuid4()))

    @rule(through=through, release=st.sampled_from(RELEASES), variant=variant, owner=owner)
    def prepare(self, through: int, release: str, variant: str, owner: str) -> None:
        run_id = uuid4()
        expected = self.world.prepare(release, variant, owner, run_id)
        question = "(prepare_import(%s, %s)).reason"
        document = self.claim_document(owner, run_id)
        assert self.call(through, question, Jsonb(manifest(release, variant)), document) == expected
        if expected == "registered":
            self.fences.append((run_id, uuid4()))

    @rule(through=through, run=run, variant=variant, owner=owner)
    def retry(self, through: int, run: int, variant: str, owner: str) -> None:
        lost, run_id = self.pick(run)[0], uuid4()
        release = found[0].key if (found := self.world.find(lost)) else "r1"
        attempts = len(found[0].attempts) if found else 0
        expected = self.world.retry(lost, variant, owner, run_id)
        question = "(retry_failed(%s, %s, %s)).reason"
        document = self.claim_document(owner, run_id)
        assert self.call(through, question, lost, Jsonb(manifest(release, variant)), document) == expected
        if found and len(found[0].attempts) > attempts:
            self.fences.append((run_id, uuid4()))

    @rule(through=through, run=run, stranger=st.integers(0, 9))
    def claim(self, through: int, run: int, stranger: int) -> None:
        run_id, executor = self.pick(run)
        executor = uuid4() if stranger == 0 else executor
        expected = self.world.claim(run_id, executor)
        assert self.call(through, "claim_import_execution(%s, %s)", run_id, executor) == expected

    @rule(through=through, run=run, phase=st.sampled_from(list(RunState)))
    def advance(self, through: int, run: int, phase: RunState) -> None:
        run_id, executor = self.pick(run)
        expected = self.world.advance(run_id, executor, phase)
        answer = self.call(through, "advance_import(%s, %s, %s, '{}')", run_id, executor, phase)
        assert (answer or None) == expected

    @rule(through=through, run=run, steps=st.integers(1, 8))
    def go_on(self, through: int, run: int, steps: int) -> None:
        """Claim, and take the next steps with their work, so that ends are reached."""
        run_id, executor = self.pick(run)
        assert self.call(through, "claim_import_execution(%s, %s)", run_id, executor) == self.world.claim(
            run_id, executor
        )
        for _ in range(steps):
            found = self.world.find(run_id)
            if found is None or not found[1].live or found[1].executor != executor:
                return
            self.work(through, run)
            target = NEXT_PHASE.get(found[1].state)
            if target is None:
                return
            assert (self.call(through, "advance_import(%s, %s, %s, '{}')", run_id, executor, target) or None) == (
                self.world.advance(run_id, executor, target)
            )

    @rule(through=through, run=run)
    def work(self, through: int, run: int) -> None:
        """The work of the phase that the run is in; of a run that nobody may write for, any work."""
        run_id, executor = self.pick(run)
        found = self.world.find(run_id)
        match found[1].state if found else None:
            case RunState.DOWNLOADING | RunState.VALIDATING:
                self.observe(through, run_id, executor)
            case RunState.NORMALIZING:
                self.expect(through, "(merge_staging(%s, %s, 1)).areas::text", run_id, executor, "merged")
            case RunState.INDEXING:
                self.expect(through, "index_release(%s, %s)", run_id, executor, "indexed")
            case RunState.VERIFYING:
                report = self.call(through, "verify_release(%s, %s)", run_id, executor)
                refused = self.world.work(run_id, executor, "verified", RunState.VERIFYING)
                sound = found is not None and found[1].sound
                assert report == refused if refused else report["ok"] == sound
            case _:
                self.stage(through, run_id, executor)

    def expect(self, through: int, question: str, run_id: UUID, executor: UUID, work: str) -> None:
        phase, done = {"merged": (RunState.NORMALIZING, "1"), "indexed": (RunState.INDEXING, "")}[work]
        refused = self.world.work(run_id, executor, work, phase)
        assert self.call(through, question, run_id, executor) == (refused or done)

    def observe(self, through: int, run_id: UUID, executor: UUID) -> None:
        row = self.observer.execute(
            "select artifact_id from import_run_artifact where run_id = %s", [run_id]
        ).fetchall()
        phases = (RunState.DOWNLOADING, RunState.VALIDATING)
        refused = self.world.work(run_id, executor, "observed", *phases)
        question = "record_artifact_observation(%s, %s, %s, %s, 100)"
        assert (self.call(through, question, run_id, executor, row[0]["artifact_id"], SHA) or None) == refused

    def stage(self, through: int, run_id: UUID, executor: UUID) -> None:
        refused = self.world.work(run_id, executor, "staged", RunState.STAGING)
        assert (self.call(through, "create_staging(%s, %s)", run_id, executor) or None) == refused
        if refused is None:
            staging = psycopg.sql.Identifier(f"staging_{run_id.hex}")
            self.connections[through].execute(psycopg.sql.SQL(AREA).format(staging))

    @rule(through=through, run=run, publish=st.booleans())
    def finish(self, through: int, run: int, publish: bool) -> None:  # noqa: FBT001  drawn
        run_id, executor = self.pick(run)
        phase = RunState.PUBLISHING if publish else RunState.VERIFYING
        release = found[0].key if (found := self.world.find(run_id)) else None
        expected = self.world.finish(run_id, executor, phase)
        question = "publish_import(%s, %s)::text" if publish else "complete_import(%s, %s, '{}')::text"
        answer = self.call(through, question, run_id, executor)
        assert answer == expected if expected else UUID(answer) == self.release_id(release)

    @rule(through=through, run=run, publish=st.booleans())
    def bring_home(self, through: int, run: int, publish: bool) -> None:  # noqa: FBT001  drawn
        """From wherever a live run stands to its end, so that pointers move."""
        live = [place for place in range(len(self.fences)) if self.is_live(place)]
        run = live[run % len(live)] if live else run
        self.go_on(through, run, 8 if publish else 7)
        self.work(through, run)
        self.finish(through, run, publish)

    def is_live(self, run: int) -> bool:
        found = self.world.find(self.pick(run)[0])
        return found is not None and found[1].live

    @rule(through=through, run=run, stranger=st.integers(0, 3), luck=st.integers(0, 2))
    def fail(self, through: int, run: int, stranger: int, luck: int) -> None:
        if luck:  # two of three are spared, so that runs come far
            return
        run_id, executor = self.pick(run)
        executor = uuid4() if stranger == 0 else executor
        why = Jsonb({"phase": "x", "reason": "Y", "message": "z"})
        expected = self.world.fail(run_id, executor)
        assert (self.call(through, "fail_import(%s, %s, %s)", run_id, executor, why) or None) == expected

    @rule(through=through, run=run)
    def heartbeat(self, through: int, run: int) -> None:
        run_id, executor = self.pick(run)
        found = self.world.find(run_id)
        held = found is not None and found[1].live and found[1].executor == executor
        answer = self.call(through, "heartbeat_import(%s, %s, '{}')", run_id, executor)
        assert (answer or None) == (None if held else "lease_lost")

    @rule(through=through, run=run)
    def cancel(self, through: int, run: int) -> None:
        run_id, _ = self.pick(run)
        found = self.world.find(run_id)
        expected = "unknown_run" if found is None else "requested" if found[1].live else found[1].state.value
        assert self.call(through, "request_cancel(%s)", run_id) == expected

    @precondition(lambda self: self.world.releases)
    @rule(through=through, release=st.sampled_from(RELEASES))
    def publish(self, through: int, release: str) -> None:
        if release in self.world.releases:
            expected = self.world.publish(release)
            answer = self.call(through, "(publish_release(%s)).release_key", self.release_id(release))
            assert answer == (expected or release)

    @rule(through=through)
    def roll_back(self, through: int) -> None:
        expected = self.world.roll_back() or self.world.published
        assert self.call(through, "(rollback_publication('world', null)).release_key") == expected

    @rule(through=through, keep=st.integers(1, 3), luck=st.integers(0, 3))
    def retire(self, through: int, keep: int, luck: int) -> None:
        if luck:  # seldom, so that there is a way back
            return
        expected = self.world.retire(keep)
        assert self.call(through, "(select count(*) from retire_releases('world', %s))", keep) == expected

    def release_id(self, key: str | None) -> UUID:
        rows = self.observer.execute("select id from release where release_key = %s", [key]).fetchall()
        release_id: UUID = rows[0]["id"]
        return release_id

    @invariant()
    def the_catalog_is_what_the_model_says(self) -> None:
        attempts = [attempt for release in self.world.releases.values() for attempt in release.attempts]
        rows = {row["id"]: row for row in self.observer.execute(RUNS.encode())}
        assert {(i, row["state"], row["attempt"]) for i, row in rows.items()} == {
            (attempt.run_id, attempt.state.value, attempt.number) for attempt in attempts
        }
        assert {i: row["executor_id"] for i, row in rows.items()} == {
            attempt.run_id: attempt.executor if attempt.live else None for attempt in attempts
        }

    @invariant()
    def no_state_is_illegal(self) -> None:
        assert self.observer.execute(LIVE_TWICE.encode()).fetchall() == [], "at most one live run a release"
        assert self.observer.execute(LEASES.encode()).fetchall() == [], "a lease exactly while its run lives"
        prints = {row["id"]: row["print"] for row in self.observer.execute(ENDED.encode())}
        assert self.ended.items() <= prints.items(), "an ended run never changes"
        self.ended = prints

    @invariant()
    def the_pointer_leads_to_a_complete_release_of_its_collection(self) -> None:
        pointer = self.observer.execute(POINTER.encode()).fetchall()
        expected = [{"release_key": self.world.published, "previous": self.world.previous}]
        assert pointer == (expected if self.world.published else [])
        events = self.observer.execute("select count(*) as many from publication_event").fetchall()
        assert events == [{"many": self.world.moves}]

    @invariant()
    def tables_are_attached_with_completion_and_dropped_with_failure(self) -> None:
        complete = sum(release.completed for release in self.world.releases.values())
        assert self.observer.execute(ATTACHED.encode()).fetchall() == [{"many": complete}]
        live = [r.latest for r in self.world.releases.values() if r.latest.live]
        building = sum(len(attempt.done & {"staged", "merged"}) for attempt in live)
        assert self.observer.execute(STANDALONE.encode()).fetchall() == [{"many": building}]


@pytest.mark.matrix
def test_no_sequence_of_calls_reaches_an_illegal_state(postgres: PostgresCluster, template: str) -> None:
    counted: Steps = {}
    machine = type("Life", (Life,), {"cluster": postgres, "template": template, "counted": counted})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    done = {name for name, (calls, refusals) in counted.items() if calls > refusals}
    assert done >= {"publish_import", "complete_import", "publish_release", "rollback_publication", "retry_failed"}
    write_evidence(
        "catalog-life-cycle",
        f"Random life-cycle calls against a model: {EXAMPLES} sequences, "
        f"{sum(calls for calls, _ in counted.values())} calls",
        ("function", "calls", "of them refused"),
        [(name, *counts) for name, counts in sorted(counted.items())],
    )
