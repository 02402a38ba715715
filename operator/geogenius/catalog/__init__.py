"""The catalog's rules as typed calls: one SQL function each, no rule in Python."""

from geogenius.catalog.answers import AreaMatch, MergeCounts, RunArtifact, StoredReject, VerifyReport
from geogenius.catalog.areas import Areas
from geogenius.catalog.published import Published
from geogenius.catalog.runs import Runs

__all__ = [
    "AreaMatch",
    "Areas",
    "MergeCounts",
    "Published",
    "RunArtifact",
    "Runs",
    "StoredReject",
    "VerifyReport",
]
