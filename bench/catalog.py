"""`python -m bench.catalog`: the catalog with many releases, many polygons and many names.

Two databases on one server with its default durability (fsync, synchronous commits): a small one with few releases, and
a large one with 10,000 registered ones in 100 collections. Every work is measured in turns on both, so that noise meets
both alike. The floor is what the same server needs for the bare minimum: one committed row for a write, the same
question put to the one table of the release for a read.
"""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from statistics import median
from time import perf_counter
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from rich.console import Console
from rich.progress import track

from bench import catalog_data as data
from bench.table import Result, show
from geogenius.catalog import Runs
from geogenius.db import Database
from geogenius.db.migrate import migrate
from geogenius.domain.area import StagedArea
from tests.support.catalog import an_intent
from tests.support.databases import DURABLE, PostgresCluster, opened, running_cluster

SMALL_REGISTERED, SMALL_HOLDING = 100, 20
LARGE_REGISTERED, LARGE_HOLDING, MOST_HOLDING = 10_000, 500, 1_000
TURNS = 60
FLAT = 1.5
"""A median may grow by this factor from the small database to the large one; what grows with releases grows more."""

PREPARE = "select * from prepare_import(%s, %s)"
FUNCTION = "select area_key from areas_for_point(%s, %s, '{tiles}')"
VIEW = """
select area_key from published_boundaries
where collection_key = 'tiles' and ST_Intersects(geom, ST_SetSRID(ST_MakePoint(%s, %s), 4326))
"""
LEAF = """
select a.area_key from boundary_{0} b join release_area_{0} a on a.area_number = b.area_number
where ST_Intersects(b.geom, ST_SetSRID(ST_MakePoint(%s, %s), 4326))
"""
SEARCH = "select area_key from search_areas(%s, '{names}')"
NAMES_LEAF = "select area_key from release_area_{0} where name = %s"
SCANS = "select pg_stat_force_next_flush(), coalesce(sum(idx_scan), 0)::int as scans from pg_stat_user_indexes where {}"

console = Console(width=170)
random = Random(11)  # noqa: S311  no secret


@dataclass(frozen=True)
class Side:
    """One of the two databases."""

    database: Database
    connection: psycopg.Connection[Any]

    def timed(self, question: str, arguments: Sequence[object]) -> float:
        """Seconds from sending to having all rows, committed."""
        began = perf_counter()
        cursor = self.connection.execute(question.encode(), arguments)
        if cursor.description:
            cursor.fetchall()
        return perf_counter() - began

    def one(self, question: str, arguments: Sequence[object] = ()) -> Any:  # noqa: ANN401  any value
        """The one value of an answer."""
        return next(iter(self.connection.execute(question.encode(), arguments).fetchall()[0].values()))

    def leaf(self, collection: str) -> str:
        """What the names of the tables of the published release end with."""
        release: UUID = self.one("select published_release(%s)", [collection])
        return release.hex


def main() -> int:
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(settings=DURABLE))
        small, large = (_side(stack, cluster) for _ in range(2))
        _fill(small, SMALL_REGISTERED, SMALL_HOLDING, "small")
        _fill(large, LARGE_REGISTERED, LARGE_HOLDING, "large")
        results = [*_registration(small, large), _publication(large)]
        for side in (small, large):
            _publish(side, "tiles", data.grid())
        _hold(large, LARGE_HOLDING, MOST_HOLDING, "large, more")
        _publish(large, "names", data.names())
        results += [*_points(small, large), _search(large)]
        show(results, console)
        one = _one_run_of_64(large)
        return 0 if all(result.met for result in results) and one else 1


def _side(stack: ExitStack, cluster: PostgresCluster) -> Side:
    conninfo = cluster.conninfo(cluster.create())
    database = stack.enter_context(opened(conninfo, "bench"))
    migrate(database)
    options = "-c search_path=geogenius,public"
    connection = stack.enter_context(
        psycopg.connect(conninfo, autocommit=True, row_factory=dict_row, options=options, prepare_threshold=None)
    )
    connection.execute("create table floor (id uuid, manifest jsonb)")
    return Side(database, connection)


def _fill(side: Side, registered: int, holding: int, title: str) -> None:
    """The data are made without waiting for the disk; what is measured waits."""
    _hold(side, 0, holding, title)
    side.connection.execute("set synchronous_commit = off")
    for number in track(range(registered - holding), f"{title}: {registered:,} releases registered", console=console):
        manifest = Jsonb(data.manifest_of(f"c{number % data.COLLECTIONS}", f"r{number}"))
        side.connection.execute(PREPARE.encode(), [manifest, _claim()])
    side.connection.execute("set synchronous_commit = on")
    side.connection.execute("analyze")


def _hold(side: Side, start: int, end: int, title: str) -> None:
    for number in track(range(start, end), f"{title}: {end:,} releases hold data", console=console):
        data.complete(side.database, f"c{number % data.COLLECTIONS}", f"d{number}", data.a_few())


def _publish(side: Side, collection: str, areas: Sequence[StagedArea]) -> None:
    with console.status(f"importing {len(areas):,} areas as {collection}"):
        release = data.complete(side.database, collection, "r1", areas)
        side.connection.execute("select publish_release(%s)", [release])
        side.connection.execute("checkpoint")


def _claim() -> Jsonb:
    return Jsonb({"run_id": str(uuid4()), "owner": "bench", "runner_backend": "inline"})


def _turns(*works: Callable[[], float]) -> list[list[float]]:
    """Every work once a turn, after a few turns that do not count."""
    turns = [[work() for work in works] for _ in range(TURNS + 5)][5:]
    return [list(seconds) for seconds in zip(*turns, strict=True)]


def _registration(small: Side, large: Side) -> list[Result]:
    def prepare(side: Side) -> float:
        collection, release = f"c{random.randrange(data.COLLECTIONS)}", f"n{uuid4().hex}"
        return side.timed(PREPARE, [Jsonb(data.manifest_of(collection, release)), _claim()])

    def floor() -> float:
        manifest = Jsonb(data.manifest_of("c1", "r1"))
        return large.timed("insert into floor values (gen_random_uuid(), %s)", [manifest])

    few, many, bare = _turns(lambda: prepare(small), lambda: prepare(large), floor)
    return [
        Result("prepare_import, 10,000 releases", many, bare, 0.005, "limit"),
        Result("prepare_import, 10,000 to 100 releases", many, few, median(few) * FLAT, "flat: 1.5 x small"),
    ]


def _publication(large: Side) -> Result:
    releases = [data.complete(large.database, "pointer", key, data.a_few()) for key in ("r1", "r2")]
    turn = iter(range(1_000_000))

    def publish() -> float:
        return large.timed("select * from publish_release(%s)", [releases[next(turn) % 2]])

    def floor() -> float:
        return large.timed("insert into floor values (gen_random_uuid(), '{}')", [])

    ours, bare = _turns(publish, floor)
    return Result("publish_release", ours, bare, 0.050, "limit")


def _points(small: Side, large: Side) -> list[Result]:
    few, many = LEAF.format(small.leaf("tiles")), LEAF.format(large.leaf("tiles"))
    for side in (small, large):
        _require_index(side, "tiles")
    works = [
        lambda: small.timed(FUNCTION, data.a_point(random)),
        lambda: large.timed(FUNCTION, data.a_point(random)),
        lambda: small.timed(VIEW, data.a_point(random)),
        lambda: large.timed(VIEW, data.a_point(random)),
        lambda: small.timed(few, data.a_point(random)),
        lambda: large.timed(many, data.a_point(random)),
    ]
    function_few, function_many, view_few, view_many, _, leaf = _turns(*works)
    return [
        Result("point in 50,000, function, 1,000 releases", function_many, leaf, 0.002, "limit"),
        Result("point in 50,000, view, 1,000 releases", view_many, leaf, 0.002, "limit"),
        Result("function, 1,000 to 20 releases", function_many, function_few, median(function_few) * FLAT, "flat"),
        Result("view, 1,000 to 20 releases", view_many, view_few, median(view_few) * FLAT, "flat"),
    ]


def _require_index(side: Side, collection: str) -> None:
    """Both ways of asking use the GiST index of the one table that they need."""
    index = f"relname = 'boundary_{side.leaf(collection)}' and indexrelname like '%geom'"
    for question in (FUNCTION, VIEW):
        before = _scans(side, index)
        side.timed(question, data.a_point(random))
        if _scans(side, index) == before:
            raise SystemExit(f"no index is used by: {question}")


def _scans(side: Side, index: str) -> int:
    side.connection.execute("select pg_stat_force_next_flush()")
    scans: int = side.connection.execute(SCANS.format(index).encode()).fetchall()[0]["scans"]
    return scans


def _search(large: Side) -> Result:
    bare = NAMES_LEAF.format(large.leaf("names"))

    def query() -> str:
        """A whole name, its beginning, or one with a letter wrong, in turn."""
        name = data.a_name(random)
        match random.randrange(3):
            case 0:
                return name
            case 1:
                return name[: max(4, len(name) // 2)]
            case _:
                place = random.randrange(1, len(name) - 1)
                return name[:place] + "x" + name[place + 1 :]

    large.connection.execute(f"create index on release_area_{large.leaf('names')} (name)".encode())
    ours, floor = _turns(lambda: large.timed(SEARCH, [query()]), lambda: large.timed(bare, [data.a_name(random)]))
    return Result("name search over 1,000,000 names", ours, floor, 0.050, "limit")


def _one_run_of_64(large: Side) -> bool:
    """64 requests for one release at once make one run."""

    def prepare(_: int) -> str:
        return type(
            Runs(large.database).prepare(data.manifest_of("c1", "contended"), an_intent(owner="bench"))
        ).__name__

    with ThreadPoolExecutor(64) as threads:
        answers = list(threads.map(prepare, range(64)))
    runs = large.one("select count(*) from import_run_status where release_key = 'contended'")
    console.print(f"64 requests for one release at once: {runs} run, {answers.count('Registered')} registered")
    return bool(runs == 1 and answers.count("Registered") == 1)


if __name__ == "__main__":
    sys.exit(main())
