"""From a pydantic model to the structural schema that Kubernetes asks for.

pydantic's JSON Schema is none: it refers to definitions, titles everything, writes optional as any-of with null, and
closes objects. The hooks change what is generated; `_Inliner` replaces references and adds rules and list keys.
"""

from typing import cast

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import override

from geogenius.api.rules import LIST_KEYS, RULES, Rule
from geogenius.domain.manifest import JsonValue

JsonObject = dict[str, JsonValue]

INT32_MAX = 2**31 - 1
REFERENCE = "#/$defs/"


def structural_schema(model: type[BaseModel]) -> dict[str, JsonValue]:
    """The schema of a model, inlined and bounded as the model is; the order of fields is that of the model."""
    document = model.model_json_schema(by_alias=True, schema_generator=StructuralGenerator)
    definitions = document.pop("$defs", {})
    inliner = _Inliner(definitions | {model.__name__: document})
    return cast("JsonObject", inliner.inlined(inliner.model(model.__name__)))


class StructuralGenerator(GenerateJsonSchema):
    """Generates what Kubernetes can take of a schema."""

    @override
    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Optional is said by `required` alone: a field that may be null can be told from an absent one by nobody."""
        return self.generate_inner(schema["schema"])

    @override
    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Drop nulls, which a field that is not nullable may not have, and what is made anew each time."""
        generated = super().default_schema(schema)
        if generated.get("default", ...) is None:
            del generated["default"]
        elif isinstance(generated.get("default"), dict):
            generated["default"] = _without_nulls(generated["default"])
        return generated

    @override
    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        """Say how wide the number is."""
        generated = super().int_schema(schema)
        generated["format"] = "int32" if generated.get("maximum", INT32_MAX + 1) <= INT32_MAX else "int64"
        return generated

    @override
    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Names of keys cannot be bounded."""
        generated = super().dict_schema(schema)
        generated.pop("propertyNames", None)
        return generated

    @override
    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Not a word about unknown fields: the API server refuses or prunes them by itself."""
        generated = super().model_schema(schema)
        generated.pop("additionalProperties", None)
        return generated

    @override
    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """A single value is an enum of one."""
        return _without_const(super().enum_schema(schema))

    @override
    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        """A single value is an enum of one."""
        return _without_const(super().literal_schema(schema))

    @override
    def field_title_should_be_set(self, schema: object) -> bool:
        """Titles repeat the names."""
        del schema
        return False


class _Inliner:
    """Replaces references, keeping what stands beside them: a description of the field is better than the model's."""

    def __init__(self, definitions: dict[str, JsonObject]) -> None:
        self._definitions = definitions
        self._rules = {model.__name__: rules for model, rules in RULES.items()}
        self._keys = {model.__name__: key for model, key in LIST_KEYS.items()}

    def inlined(self, node: JsonValue) -> JsonValue:
        """The node without references, down to its leaves."""
        if isinstance(node, list):
            return [self.inlined(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            beside = {key: value for key, value in node.items() if key != "$ref"}
            return self.inlined(self.model(_referred(node)) | beside)
        inlined = {key: self.inlined(value) for key, value in (node | self._list_type(node)).items()}
        if inlined.get("additionalProperties") == {}:
            del inlined["additionalProperties"]
            inlined["x-kubernetes-preserve-unknown-fields"] = True
        return inlined

    def model(self, name: str) -> JsonObject:
        """The schema of a model (or enum) with its rules, and without its title, which only repeats its name."""
        named = {key: value for key, value in self._definitions[name].items() if key != "title"}
        rules: list[JsonValue] = [_rule(rule) for rule in self._rules.get(name, ())]
        return named | {"x-kubernetes-validations": rules} if rules else named

    def _list_type(self, node: JsonObject) -> JsonObject:
        if node.get("type") != "array":
            return {}
        key = self._keys.get(_referred(node.get("items")))
        if key is None:
            return {"x-kubernetes-list-type": "atomic"}
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


def _referred(node: JsonValue) -> str:
    reference = node.get("$ref") if isinstance(node, dict) else None
    return reference.removeprefix(REFERENCE) if isinstance(reference, str) else ""


def _without_const(generated: JsonSchemaValue) -> JsonSchemaValue:
    if "const" in generated:
        generated["enum"] = [generated.pop("const")]
    return generated


def _rule(rule: Rule) -> JsonObject:
    generated: JsonObject = {"rule": rule.expression, "message": rule.message, "reason": rule.reason}
    return generated if rule.field_path is None else generated | {"fieldPath": rule.field_path}


def _without_nulls(value: JsonSchemaValue) -> JsonSchemaValue:
    return {
        key: _without_nulls(item) if isinstance(item, dict) else item for key, item in value.items() if item is not None
    }
