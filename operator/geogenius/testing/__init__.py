"""For authors of runners: the conformance suite that the shipped runners pass, to be run over one's own.

It needs pytest and a PostgreSQL with PostGIS, in which `prepare_catalog` makes a catalog. See docs/runners.md.
"""

from geogenius.testing.bench import Arrived, CatalogBench
from geogenius.testing.conformance import RunnerContract
from geogenius.testing.rig import RunnerRig
from geogenius.testing.rights import prepare_catalog

__all__ = ["Arrived", "CatalogBench", "RunnerContract", "RunnerRig", "prepare_catalog"]
