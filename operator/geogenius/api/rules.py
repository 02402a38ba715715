"""What the API server checks beyond types and bounds. The models check the same, in the same words."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from geogenius.api.v1alpha1 import (
    CLAIM_STANDS_ALONE,
    ONE_SOURCE_OF_FILES,
    Condition,
    FileKey,
    ImportRequestSpec,
    MinimumAreas,
    SuppliedFiles,
)
from geogenius.manifest.model import AreaTypeModel, ArtifactModel, AuthorityModel, ManifestModel, SourceModel


@dataclass(frozen=True, slots=True)
class Rule:
    """One CEL rule of the schema; `field_path` (relative) names the field to blame where it is not the whole object.

    `reason` is one of two: the others make the API server leave the message out.
    """

    expression: str
    message: str
    reason: Literal["FieldValueInvalid", "FieldValueForbidden"] = "FieldValueInvalid"
    field_path: str | None = None


RULES: dict[type[BaseModel], tuple[Rule, ...]] = {
    ImportRequestSpec: (
        Rule(
            "self == oldSelf",
            "spec cannot be changed after creation; create another ImportRequest instead",
            reason="FieldValueForbidden",
        ),
        Rule(
            "!has(self.files) || self.files.size() < 2 || !self.files.exists(place, has(place.persistentVolumeClaim))",
            CLAIM_STANDS_ALONE,
            field_path=".files",
        ),
    ),
    SuppliedFiles: (Rule("has(self.configMap) != has(self.persistentVolumeClaim)", ONE_SOURCE_OF_FILES),),
    ManifestModel: (
        Rule(
            "!has(self.areaTypes) || self.areaTypes.all(a, self.areaTypes.exists_one(b, a.rank == b.rank))",
            "each rank must be unique",
            field_path=".areaTypes",
        ),
    ),
    ArtifactModel: (
        Rule("has(self.url) || self.operatorSupplied", "give a url, or operatorSupplied: true"),
        Rule("!has(self.url) || !self.operatorSupplied", "give either a url or operatorSupplied: true, not both"),
    ),
}
"""The rules of each model."""

LIST_KEYS: dict[type[BaseModel], str] = {
    AuthorityModel: "key",
    AreaTypeModel: "key",
    SourceModel: "sourceKey",
    ArtifactModel: "logicalName",
    SuppliedFiles: "name",
    FileKey: "key",
    MinimumAreas: "areaType",
    Condition: "type",
}
"""The field that tells the items of a list apart: the API server refuses it twice, and merges lists by it."""
