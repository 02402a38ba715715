import resource
import time
from collections.abc import Callable

from geogenius.catalog.areas import Areas
from geogenius.catalog.places import Places
from geogenius.catalog.runs import Runs
from geogenius.db import Database
from geogenius.domain.executed import Done, Executed
from geogenius.domain.run import RunId
from tests.support.packages import natural_earth_states


def test_all_states_of_the_world_are_accounted_for(
    imported: Callable[..., tuple[RunId, Executed]], database: Database, runs: Runs, areas: Areas
) -> None:
    text = natural_earth_states().read_bytes()
    start = time.perf_counter()
    run_id, executed = imported(
        text, publish=True, code_property="adm1_code", attribute_properties=["iso_a2", "iso_3166_2", "name_ar"]
    )
    seconds = time.perf_counter() - start
    assert executed == Done(run_id)
    run = runs.get(run_id)
    assert run is not None
    assert areas.rejects(run_id, 5) == []
    figures = {"rows": 4596, "areas": 4596, "boundaries": 4596, "repaired": 2, "rejected": 0}
    assert run.metrics.items() >= figures.items()
    berlin = Places(database).for_point(13.4, 52.5)
    assert [(area.name, area.attributes["iso_3166_2"]) for area in berlin] == [("Berlin", "DE-BE")]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"imported and published in {seconds:.1f} s, {len(text) / seconds / 1e6:.1f} MB/s, peak {peak} MiB")
