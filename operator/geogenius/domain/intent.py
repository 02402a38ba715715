"""What a caller wants done with a manifest; stored with the run, so that it survives whoever asked."""

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from geogenius.domain.run import Deadlines, RequestRef, RunId, VerificationGates, Workload


@dataclass(frozen=True, slots=True)
class ImportIntent:
    """Everything about a run that is not the manifest.

    `run_id` is chosen by the caller and used if a new run is registered: a repeated call whose first
    answer was lost finds the run it made. `workload` is set for runs that a Kubernetes Job carries;
    `cluster_id` for runs that a request of that cluster asked for and no Job carries.
    """

    run_id: RunId
    owner: str
    runner: str
    publish: bool
    stale_after: timedelta = timedelta(minutes=15)
    deadlines: Deadlines = field(default_factory=Deadlines)
    reject_limit: int = 0
    gates: VerificationGates = field(default_factory=VerificationGates)
    workload: Workload | None = None
    request: RequestRef | None = None
    cluster_id: UUID | None = None
