"""Questions about codes and names, and the one that tries everything. One call each."""

from collections.abc import Sequence
from pathlib import Path

from psycopg.types.json import Jsonb

from geogenius.catalog.matches import (
    EVERYTHING,
    AreaMatch,
    Clues,
    MatchMethod,
    Scope,
    arguments_of,
    input_of,
    listed,
    match_of,
    matches_by_seed,
)
from geogenius.catalog.statements import Statements
from geogenius.db import Database
from geogenius.db.sql import load_queries

_QUERIES = load_queries(Path(__file__).parent / "queries" / "lookup.sql")


class Lookup:
    """Reads only; works on a standby.

    Every method raises DatabaseUnavailable when the database does not answer, InvalidRequest (UnknownRelease) and
    Conflict (ReleaseIncomplete, ReleaseRetired) for the release that the scope names.
    """

    def __init__(self, database: Database) -> None:
        self._statements = Statements(database, _QUERIES)

    def by_code(
        self, code_type: str, value: str, scope: Scope = EVERYTHING, *, parent: str | None = None, max_depth: int = 1
    ) -> list[AreaMatch]:
        """The areas that have a code: their own, under its authority, or a further one, under its type.

        With an area key as `parent`, only areas up to `max_depth` steps below it. By collection, broad types first.
        Raises InvalidRequest (BadDepth).
        """
        return self.by_code_many([(code_type, value)], scope, parent=parent, max_depth=max_depth)[0]

    def by_code_many(
        self,
        codes: Sequence[tuple[str, str]],
        scope: Scope = EVERYTHING,
        *,
        parent: str | None = None,
        max_depth: int = 1,
    ) -> list[list[AreaMatch]]:
        """The same for each of several pairs (code type, value), in their order; an empty list where nothing is found.

        Raises InvalidRequest (NullArgument, BadDepth).
        """
        known = {
            "code_types": [code_type for code_type, _ in codes],
            "code_values": [value for _, value in codes],
            "parent": parent,
            "max_depth": max_depth,
        }
        rows = self._statements.rows("areas_by_code_many", **arguments_of(scope), **known)
        return matches_by_seed(rows, len(codes))

    def search(
        self, text: str, scope: Scope = EVERYTHING, *, limit: int | None = 50, min_score: float | None = None
    ) -> list[AreaMatch]:
        """The `limit` areas (None: all) whose names resemble the text most or begin with it, best `score` first.

        `min_score` is how much a name must resemble it, above 0 to 1; None asks for 0.6 and, only while nothing is
        found, for less. Wildcards are taken literally, and the case does not matter. Raises InvalidRequest (BlankQuery,
        BadScore, BadLimit).
        """
        known = {"text": text, "limit": limit, "min_score": min_score}
        rows = self._statements.rows("search_areas", **arguments_of(scope), **known)
        return [match_of(row) for row in rows]

    def resolve(
        self, clues: Clues, scope: Scope = EVERYTHING, *, strategies: Sequence[MatchMethod] | None = None
    ) -> list[AreaMatch]:
        """The areas that the clues mean: strategies are tried in order, and the first that finds any area answers.

        They are (None) containment, code, name and proximity; one without its clue is passed over. At most 25 areas by
        name, 50 by proximity. Raises InvalidRequest (BadResolveInput, BadStrategy), and what the questions asked raise.
        """
        known = {"input": Jsonb(input_of(clues)), "strategies": listed(strategies)}
        return [match_of(row) for row in self._statements.rows("resolve", **arguments_of(scope), **known)]
