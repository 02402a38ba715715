"""An atlas to put questions to, with details written into its release by hand, whatever importers can load."""

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from geogenius.catalog import AreaMatch
from geogenius.db import Database
from geogenius.domain.area import StagedArea
from geogenius.domain.run import ReleaseId
from tests.support.catalog import a_manifest, an_area, published, release_of

Sql = psycopg.Connection[psycopg.rows.DictRow]
KINDS = [
    {"key": key, "rank": rank, "requires_geometry": False}
    for key, rank in (("continent", 5), ("country", 10), ("state", 20), ("county", 30))
]
_SET_POINT = """
update release_area set centroid = ST_MakePoint(%s, %s)::geography where area_key = %s
"""
_ADD_NAME = """
insert into area_name select collection_key, release_id, area_number, %s, %s, %s from release_area where area_key = %s
"""
_ADD_CODE = """
insert into area_code select collection_key, release_id, area_number, %s, %s from release_area where area_key = %s
"""
_RELATE = """
insert into relation
select p.collection_key, p.release_id, p.area_number, c.area_number, %s, %s, %s, %s
from release_area p join release_area c using (collection_key, release_id)
where p.area_key = %s and c.area_key = %s
"""


def an_atlas(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any field
    """A manifest of continents, countries, states and counties; none needs a boundary."""
    return a_manifest(area_types=KINDS, **changes)


def bare(*codes: str, area_type: str = "country") -> list[StagedArea]:
    """Areas without a boundary, named like their codes."""
    return [an_area(position, code, None, area_type=area_type, name=code) for position, code in enumerate(codes, 1)]


def read(database: Database, areas: Sequence[StagedArea], **changes: Any) -> ReleaseId:  # noqa: ANN401  any field
    """Publishes a release of an atlas with these areas."""
    return release_of(database, published(database, an_atlas(**changes), areas=areas))


def key(code: str, area_type: str = "country") -> str:
    return f"iso:{area_type}:{code}"


def codes(matches: Iterable[AreaMatch]) -> list[str]:
    return [match.code for match in matches]


def whole(match: AreaMatch) -> str:
    """Which area of which release."""
    return f"{match.collection}/{match.release}/{match.area_key}"


def _refill(sql: Sql) -> None:
    """Makes complete releases know their new rows, which no role of ours could add to them."""
    with sql.transaction():
        sql.execute("set local session_replication_role = replica")
        sql.execute("update release set filled = filled_tables(id) where completed_at is not null")


def set_point(sql: Sql, area_key: str, longitude: float, latitude: float) -> None:
    sql.execute(_SET_POINT, [longitude, latitude, area_key])


def add_name(sql: Sql, area_key: str, name: str, kind: str = "alias", locale: str | None = None) -> None:
    sql.execute(_ADD_NAME, [name, kind, locale, area_key])
    _refill(sql)


def add_code(sql: Sql, area_key: str, code_type: str, value: str) -> None:
    sql.execute(_ADD_CODE, [code_type, value, area_key])
    _refill(sql)


def relate(
    sql: Sql,
    parent: str,
    child: str,
    relation_type: str = "contains",
    measures: tuple[float, float, float] | None = None,
) -> None:
    """A relation in every release that has both; `measures` are square metres and the shares of parent and child."""
    sql.execute(_RELATE, [relation_type, *(measures or (None, None, None)), parent, child])
    _refill(sql)
