"""What a message says: which run to execute, for which catalog, and for how long at most."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from geogenius.domain.manifest import JsonValue
from geogenius.domain.run import RunId

RUN_ID = "run_id"
PUBLISH = "publish"
STALE_AFTER_SECONDS = "stale_after_seconds"
SCHEMA = "schema"
DEADLINE_SECONDS = "deadline_seconds"


@dataclass(frozen=True, slots=True)
class Order:
    """One run to be executed. No connection and no module travels: a worker works with its own.

    `publish` and `stale_after` say what the stored run says, for people who look into the queue.
    """

    run_id: RunId
    schema: str
    publish: bool
    stale_after: timedelta
    deadline: timedelta

    def to_json(self) -> dict[str, JsonValue]:
        """The input of the flow run."""
        return {
            RUN_ID: str(self.run_id),
            SCHEMA: self.schema,
            PUBLISH: self.publish,
            STALE_AFTER_SECONDS: int(self.stale_after.total_seconds()),
            DEADLINE_SECONDS: int(self.deadline.total_seconds()),
        }


@dataclass(frozen=True, slots=True)
class Malformed:
    """A message that no worker of this catalog can execute; `message` names the field and what is wrong with it."""

    message: str


def order_of(said: JsonValue, schema: str) -> Order | Malformed:
    """What the input of a flow run orders, read by a worker of the catalog in `schema`."""
    if not isinstance(said, Mapping):
        return Malformed("the input is not an object")
    run_id = _run_id(said.get(RUN_ID))
    if run_id is None:
        return Malformed(f"{RUN_ID}: {said.get(RUN_ID)!r:.100} is not the id of a run")
    if said.get(SCHEMA) != schema:
        return Malformed(f"{SCHEMA}: {said.get(SCHEMA)!r:.100} is not the catalog of this worker, {schema}")
    seconds: dict[str, int] = {}
    for name in (STALE_AFTER_SECONDS, DEADLINE_SECONDS):
        value = said.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            return Malformed(f"{name}: {value!r:.100} is not a positive number of seconds")
        seconds[name] = value
    return Order(
        run_id=run_id,
        schema=schema,
        publish=said.get(PUBLISH) is True,
        stale_after=timedelta(seconds=seconds[STALE_AFTER_SECONDS]),
        deadline=timedelta(seconds=seconds[DEADLINE_SECONDS]),
    )


def _run_id(said: JsonValue) -> RunId | None:
    try:
        return RunId(UUID(said)) if isinstance(said, str) else None
    except ValueError:
        return None
