"""The schema is structural: what an API server would refuse is not in it, and everything has an end."""

import json
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import BaseModel, Field, JsonValue

from geogenius.api.crd import HEADER, crd_yaml, custom_resource_definition
from geogenius.api.rules import LIST_KEYS, RULES
from geogenius.api.schema import structural_schema

FORBIDDEN = {
    "$ref",
    "$defs",
    "title",
    "const",
    "uniqueItems",
    "prefixItems",
    "patternProperties",
    "propertyNames",
    "nullable",
}


class Colour(StrEnum):
    """Two colours."""

    RED = "Red"
    BLUE = "Blue"


class Inner(BaseModel):
    """What the model says."""

    size: int = Field(default=1, description="A size.", ge=0, le=10)


class Outer(BaseModel):
    """Everything a model may use."""

    model_config = {"extra": "forbid"}

    inner: Inner | None = Field(default=None, description="What the field says.")
    colour: Colour = Field(description="A colour.")
    single: Literal["only"] = Field(description="One value.")
    wide: Annotated[int, Field(ge=0)] = Field(description="A wide number.")
    when: datetime | None = Field(default=None, description="A moment.")
    names: list[str] = Field(default_factory=list, max_length=3)
    free: dict[str, JsonValue] = Field(default_factory=dict, max_length=4)


def nodes(node: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All schemas in the schema, with their paths."""
    assert isinstance(node, dict)
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for inside in ("items", "additionalProperties"):
        if inside in node:
            yield from nodes(node[inside], f"{path}[]")


def version() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(crd_yaml())["spec"]["versions"][0]
    return found


def schema() -> dict[str, Any]:
    found: dict[str, Any] = version()["schema"]["openAPIV3Schema"]
    return found


SPEC_AND_STATUS = [
    pytest.param(node, id=path)
    for root in ("spec", "status")
    for path, node in nodes(schema()["properties"][root], root)
]


@pytest.mark.parametrize("node", SPEC_AND_STATUS)
def test_no_schema_uses_what_kubernetes_forbids(node: dict[str, Any]) -> None:
    assert not FORBIDDEN & node.keys()
    assert node.get("additionalProperties") is not False
    assert "type" in node or node.get("x-kubernetes-int-or-string") is True


@pytest.mark.parametrize("node", SPEC_AND_STATUS)
def test_every_schema_has_an_end(node: dict[str, Any]) -> None:
    match node.get("type"):
        case "string":
            assert {"maxLength", "enum", "format"} & node.keys()
        case "array":
            assert "maxItems" in node
            assert node["x-kubernetes-list-type"] in {"map", "atomic"}
        case "integer":
            assert {"minimum", "maximum", "format"} <= node.keys()
        case "object" if "properties" not in node:
            assert "maxProperties" in node


@pytest.mark.parametrize("node", SPEC_AND_STATUS)
def test_every_field_is_described(node: dict[str, Any]) -> None:
    for name, field in node.get("properties", {}).items():
        assert field.get("description", "").endswith(".") or ":" in field.get("description", ""), name


def test_a_model_becomes_a_structural_schema() -> None:
    assert structural_schema(Outer) == {
        "description": "Everything a model may use.",
        "type": "object",
        "required": ["colour", "single", "wide"],
        "properties": {
            "inner": {
                "description": "What the field says.",
                "type": "object",
                "properties": {
                    "size": {
                        "description": "A size.",
                        "type": "integer",
                        "format": "int32",
                        "default": 1,
                        "minimum": 0,
                        "maximum": 10,
                    }
                },
            },
            "colour": {"description": "A colour.", "type": "string", "enum": ["Red", "Blue"]},
            "single": {"description": "One value.", "type": "string", "enum": ["only"]},
            "wide": {"description": "A wide number.", "type": "integer", "format": "int64", "minimum": 0},
            "when": {"description": "A moment.", "type": "string", "format": "date-time"},
            "names": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": 3,
                "x-kubernetes-list-type": "atomic",
            },
            "free": {"type": "object", "maxProperties": 4, "x-kubernetes-preserve-unknown-fields": True},
        },
    }


def test_every_rule_and_every_list_key_is_in_the_definition() -> None:
    found = dict(nodes(schema()["properties"]["spec"], "spec")) | dict(
        nodes(schema()["properties"]["status"], "status")
    )
    rules = [rule["rule"] for node in found.values() for rule in node.get("x-kubernetes-validations", [])]
    keyed = [node for node in found.values() if node.get("x-kubernetes-list-type") == "map"]

    assert sorted(rules) == sorted(rule.expression for rules in RULES.values() for rule in rules)
    assert sorted(node["x-kubernetes-list-map-keys"][0] for node in keyed) == sorted(LIST_KEYS.values())


def test_the_yaml_is_the_definition_and_the_same_every_time() -> None:
    assert crd_yaml() == crd_yaml()
    assert crd_yaml().startswith(HEADER)
    assert yaml.safe_load(crd_yaml()) == custom_resource_definition()
    assert "&id" not in crd_yaml()


def test_the_columns_are_those_of_the_design() -> None:
    columns = version()["additionalPrinterColumns"]
    shown = [column["name"] for column in columns if "priority" not in column]
    wide = [column["name"] for column in columns if "priority" in column]

    assert shown == ["State", "Phase", "Progress", "Rows", "Attempt", "Age"]
    assert wide == ["Reason", "Run", "Job", "Message"]


def test_no_default_holds_a_null_which_the_api_server_would_refuse() -> None:
    schema = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    defaults = {path: json.dumps(node["default"]) for path, node in nodes(schema) if "default" in node}
    assert defaults
    assert [path for path, default in defaults.items() if "null" in default] == []
