"""The catalog's rules as typed calls: one SQL function each, no rule in Python."""

from geogenius.catalog.answers import (
    MergeCounts,
    Pointer,
    PointerMove,
    PublicationEvent,
    RelateCounts,
    ReleaseStatus,
    RunArtifact,
    StoredReject,
    VerifyReport,
)
from geogenius.catalog.areas import Areas
from geogenius.catalog.executions import Executions
from geogenius.catalog.hierarchy import Hierarchy
from geogenius.catalog.lookup import Lookup
from geogenius.catalog.matches import AreaMatch, Clues, MatchMethod, Scope
from geogenius.catalog.places import Places
from geogenius.catalog.publications import Publications
from geogenius.catalog.runs import Runs

__all__ = [
    "AreaMatch",
    "Areas",
    "Clues",
    "Executions",
    "Hierarchy",
    "Lookup",
    "MatchMethod",
    "MergeCounts",
    "Places",
    "Pointer",
    "PointerMove",
    "PublicationEvent",
    "Publications",
    "RelateCounts",
    "ReleaseStatus",
    "RunArtifact",
    "Runs",
    "Scope",
    "StoredReject",
    "VerifyReport",
]
