"""Questions about what lies below, above and beside an area. One call each."""

from collections.abc import Sequence
from pathlib import Path

from geogenius.catalog.matches import EVERYTHING, AreaMatch, Scope, arguments_of, listed, matches_by_seed
from geogenius.catalog.statements import Statements
from geogenius.db import Database
from geogenius.db.sql import load_queries

_QUERIES = load_queries(Path(__file__).parent / "queries" / "hierarchy.sql")


class Hierarchy:
    """Reads only; works on a standby. Areas are named by their keys; an unknown key has no relatives.

    `classifications` are the relation types to go along; None goes along all. Answers come by depth, then by
    collection, broad types first. The plural forms answer with one list for each key, in the order of the keys.

    Every method raises DatabaseUnavailable when the database does not answer, InvalidRequest (UnknownRelease) and
    Conflict (ReleaseIncomplete, ReleaseRetired) for the release that the scope names, InvalidRequest (NullArgument)
    for a key that is None, and InvalidRequest (BadDepth) for a `max_depth` below 1.
    """

    def __init__(self, database: Database) -> None:
        self._statements = Statements(database, _QUERIES)

    def children_of(
        self,
        area_key: str,
        scope: Scope = EVERYTHING,
        *,
        classifications: Sequence[str] | None = None,
        max_depth: int = 1,
    ) -> list[AreaMatch]:
        """The areas up to `max_depth` steps below, each once, at its least `depth`."""
        return self.children_of_many([area_key], scope, classifications=classifications, max_depth=max_depth)[0]

    def children_of_many(
        self,
        area_keys: Sequence[str],
        scope: Scope = EVERYTHING,
        *,
        classifications: Sequence[str] | None = None,
        max_depth: int = 1,
    ) -> list[list[AreaMatch]]:
        """The same for each of several areas."""
        return self._ask("children_of_many", area_keys, scope, classifications, max_depth=max_depth)

    def ancestors_of(
        self,
        area_key: str,
        scope: Scope = EVERYTHING,
        *,
        classifications: Sequence[str] | None = None,
        max_depth: int = 1,
    ) -> list[AreaMatch]:
        """The areas up to `max_depth` steps above, each once, at its least `depth`."""
        return self.ancestors_of_many([area_key], scope, classifications=classifications, max_depth=max_depth)[0]

    def ancestors_of_many(
        self,
        area_keys: Sequence[str],
        scope: Scope = EVERYTHING,
        *,
        classifications: Sequence[str] | None = None,
        max_depth: int = 1,
    ) -> list[list[AreaMatch]]:
        """The same for each of several areas."""
        return self._ask("ancestors_of_many", area_keys, scope, classifications, max_depth=max_depth)

    def related(
        self, area_key: str, scope: Scope = EVERYTHING, *, classifications: Sequence[str] | None = None
    ) -> list[AreaMatch]:
        """The areas one step below (`depth` 1) and above (-1), with what was measured of the relation.

        `coverage_of_input` is how many per cent of the given area lie in the one found.
        """
        return self.related_many([area_key], scope, classifications=classifications)[0]

    def related_many(
        self, area_keys: Sequence[str], scope: Scope = EVERYTHING, *, classifications: Sequence[str] | None = None
    ) -> list[list[AreaMatch]]:
        """The same for each of several areas."""
        return self._ask("related_areas_many", area_keys, scope, classifications)

    def _ask(
        self, question: str, keys: Sequence[str], scope: Scope, classes: Sequence[str] | None, **arguments: object
    ) -> list[list[AreaMatch]]:
        known = {"area_keys": list(keys), "classifications": listed(classes)}
        rows = self._statements.rows(question, **arguments_of(scope), **known, **arguments)
        return matches_by_seed(rows, len(keys))
