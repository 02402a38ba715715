"""What the life-cycle functions of the catalog must answer: the rules said once more, in Python, for random tests.

Only the rules; no table of the catalog is modelled. A collection `world`, some releases, their attempts, one pointer.
"""

from dataclasses import dataclass, field
from uuid import UUID

from geogenius.domain.run import NEXT_PHASE, RunState

NEEDS = {
    "merged": ("staged", "staging_lost"),
    "indexed": ("merged", "not_merged"),
    "verified": ("merged", "not_merged"),
}
ENDED = (RunState.COMPLETED, RunState.FAILED)


@dataclass
class Attempt:
    """One run; `done` holds the work that its phases have behind them."""

    run_id: UUID
    number: int
    manifest: str
    owner: str
    state: RunState = RunState.PENDING
    executor: UUID | None = None
    done: set[str] = field(default_factory=set)

    @property
    def live(self) -> bool:
        return self.state not in ENDED

    @property
    def sound(self) -> bool:
        """Whether verification says ok: what it looked at was indexed."""
        return {"verified", "indexed"} <= self.done


@dataclass
class Release:
    """A release with its attempts, oldest first."""

    key: str
    manifest: str
    attempts: list[Attempt]
    retired: bool = False
    order: int = 0

    @property
    def latest(self) -> Attempt:
        return self.attempts[-1]

    @property
    def completed(self) -> bool:
        return any(attempt.state is RunState.COMPLETED for attempt in self.attempts)


@dataclass
class World:
    """One collection. Every method gives the answer expected, or the word of the refusal, and changes the model."""

    releases: dict[str, Release] = field(default_factory=dict)
    published: str | None = None
    previous: str | None = None
    seen: set[str] = field(default_factory=set)
    moves: int = 0
    completions: int = 0

    def find(self, run_id: UUID) -> tuple[Release, Attempt] | None:
        for release in self.releases.values():
            for attempt in release.attempts:
                if attempt.run_id == run_id:
                    return release, attempt
        return None

    def prepare(self, key: str, manifest: str, owner: str, run_id: UUID) -> str:
        release = self.releases.get(key)
        if release is None:
            self.releases[key] = Release(key, manifest, [Attempt(run_id, 1, manifest, owner)])
            return "registered"
        latest = release.latest
        if release.retired or key in self.seen:
            return "protected"
        same = latest.manifest == manifest
        if not latest.live:
            return latest.state.value if same else "manifest_changed"
        return "same_owner" if same and latest.owner == owner else "live_import"

    def retry(self, lost_id: UUID, manifest: str, owner: str, run_id: UUID) -> str:
        found = self.find(lost_id)
        if found is None:
            return "not_found"
        release, lost = found
        latest = release.latest
        if release.completed:
            return "protected"
        if latest is not lost:
            next_one = latest.number == lost.number + 1 and latest.live
            again = next_one and (latest.manifest, latest.owner) == (manifest, owner)
            return "retried" if again else "not_latest_attempt"
        if lost.state is not RunState.FAILED:
            return "not_failed"
        release.attempts.append(Attempt(run_id, lost.number + 1, manifest, owner))
        release.manifest = manifest
        return "retried"

    def claim(self, run_id: UUID, executor: UUID) -> str:
        found = self.find(run_id)
        if found is None:
            return "missing"
        release, attempt = found
        if attempt is not release.latest:
            return "superseded"
        if not attempt.live:
            return attempt.state.value
        if attempt.state is not RunState.PENDING or attempt.executor not in (None, executor):
            return "occupied"
        attempt.executor = executor
        return "claimed"

    def refusal(self, run_id: UUID, executor: UUID, *phases: RunState) -> str | None:
        """What the fence says."""
        found = self.find(run_id)
        if found is None:
            return "unknown_run"
        release, attempt = found
        if attempt is not release.latest:
            return "superseded"
        if not attempt.live or attempt.executor != executor:
            return "lease_lost"
        return None if attempt.state in phases else "wrong_phase"

    def advance(self, run_id: UUID, executor: UUID, target: RunState) -> str | None:
        before = [state for state, following in NEXT_PHASE.items() if following is target]
        refused = self.refusal(run_id, executor, *before)
        if refused is None:
            self.attempt(run_id).state = target
        return refused

    def work(self, run_id: UUID, executor: UUID, work: str, *phases: RunState) -> str | None:
        """Work of a phase. A phase may be passed without its work; then the next one that needs it says so."""
        refused = self.refusal(run_id, executor, *phases)
        if refused is not None:
            return refused
        needed, word = NEEDS.get(work, ("", None))
        if needed and needed not in self.attempt(run_id).done:
            return word
        self.attempt(run_id).done.add(work)
        return None

    def finish(self, run_id: UUID, executor: UUID, phase: RunState) -> str | None:
        """complete_import from `verifying`, publish_import from `publishing`."""
        refused = self.refusal(run_id, executor, phase)
        if refused is not None:
            return refused
        release, attempt = self.find(run_id) or _missing(run_id)
        if "observed" not in attempt.done:
            return "artifact_unobserved"
        if not attempt.sound:
            return "not_verified"
        attempt.state = RunState.COMPLETED
        self.completions += 1
        release.order = self.completions
        if phase is RunState.PUBLISHING:
            self._move(release.key)
        return None

    def fail(self, run_id: UUID, executor: UUID) -> str | None:
        found = self.find(run_id)
        if found is None:
            return "unknown_run"
        attempt = found[1]
        if attempt.state is RunState.COMPLETED:
            return "run_completed"
        if attempt.state is RunState.FAILED:
            return None
        if attempt.executor not in (None, executor):
            return "lease_lost"
        attempt.executor = executor
        attempt.state = RunState.FAILED
        return None

    def publish(self, key: str) -> str | None:
        release = self.releases[key]
        if release.retired:
            return "release_retired"
        if release.latest.live:
            return "release_live"
        if not release.completed:
            return "release_incomplete"
        if self.published != key:
            self._move(key)
        return None

    def roll_back(self) -> str | None:
        if self.previous is None:
            return "no_previous_release"
        self._move(self.previous)
        return None

    def retire(self, keep: int) -> int:
        """How many releases are retired."""
        old = [release for release in self.releases.values() if release.completed and not release.retired]
        old = sorted((r for r in old if r.key != self.published), key=lambda r: r.order, reverse=True)[keep - 1 :]
        for release in old:
            release.retired = True
        if self.previous in {release.key for release in old}:
            self.previous = None
        return len(old)

    def attempt(self, run_id: UUID) -> Attempt:
        return (self.find(run_id) or _missing(run_id))[1]

    def _move(self, key: str) -> None:
        self.published, self.previous = key, self.published
        self.seen.add(key)
        self.moves += 1


def _missing(run_id: UUID) -> tuple[Release, Attempt]:
    raise AssertionError(run_id)
