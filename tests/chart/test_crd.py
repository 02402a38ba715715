"""The definition in the chart is the generated one, and outlives the release unless told otherwise."""

import yaml

from geogenius.api.crd import crd_yaml
from tests.support.chart import Rendered

KIND = "CustomResourceDefinition"


def test_the_definition_is_the_generated_one_and_is_kept() -> None:
    expected = yaml.safe_load(crd_yaml())
    expected["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}

    assert Rendered().one(KIND) == expected


def test_a_definition_that_is_not_to_be_kept_is_the_generated_one_as_it_is() -> None:
    assert Rendered({"crds": {"keep": False}}).one(KIND) == yaml.safe_load(crd_yaml())


def test_the_definition_can_be_left_out_and_nothing_else_changes() -> None:
    without = Rendered({"crds": {"install": False}})

    assert without.all(KIND) == []
    assert without.objects == [found for found in Rendered().objects if found["kind"] != KIND]
