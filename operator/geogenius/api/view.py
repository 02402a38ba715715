"""What is known about a request when its status is written."""

from dataclasses import dataclass

from geogenius.domain.errors import InvalidRequest, Unavailable
from geogenius.domain.observation import Observation
from geogenius.domain.prepared import Refused
from geogenius.domain.run import Run


@dataclass(frozen=True, slots=True)
class RequestView:
    """One look at a request from all sides; None stands for what there is not, or was not looked at.

    A `refusal` is final: the request itself is wrong, or the rules of the catalog say no. `unavailable` says why
    nothing is known yet. Where there is a `run`, it counts and both are ignored.
    """

    generation: int
    run: Run | None = None
    refusal: Refused | InvalidRequest | None = None
    unavailable: Unavailable | None = None
    observation: Observation | None = None
