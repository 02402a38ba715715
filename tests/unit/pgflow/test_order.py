import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geogenius.domain.manifest import JsonValue
from geogenius.pgflow.order import Malformed, Order, order_of
from tests.support.builders import RUN_ID

ORDER = Order(RUN_ID, "geogenius", publish=True, stale_after=timedelta(minutes=15), deadline=timedelta(minutes=65))


@pytest.mark.parametrize("publish", [True, False])
def test_an_order_survives_the_queue(publish: bool) -> None:  # noqa: FBT001  a parameter of the test
    order = Order(RUN_ID, "geogenius", publish, timedelta(seconds=7), timedelta(seconds=70))

    assert order_of(json.loads(json.dumps(order.to_json())), "geogenius") == order


def test_neither_a_connection_nor_a_module_travels() -> None:
    assert set(ORDER.to_json()) == {"run_id", "schema", "publish", "stale_after_seconds", "deadline_seconds"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run_id", "one"),
        ("run_id", 7),
        ("run_id", None),
        ("schema", "another"),
        ("schema", None),
        ("stale_after_seconds", "900"),
        ("stale_after_seconds", True),
        ("stale_after_seconds", 0),
        ("deadline_seconds", -1),
        ("deadline_seconds", 1.5),
        ("deadline_seconds", None),
    ],
)
def test_a_wrong_field_is_named(field: str, value: Any) -> None:  # noqa: ANN401  whatever JSON holds
    malformed = order_of({**ORDER.to_json(), field: value}, "geogenius")

    assert isinstance(malformed, Malformed)
    assert malformed.message.startswith(f"{field}: ")


@pytest.mark.parametrize("said", [None, [], "x", 3, {}])
def test_what_is_no_order_is_malformed(said: JsonValue) -> None:
    assert isinstance(order_of(said, "geogenius"), Malformed)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(list(ORDER.to_json())), inner),
)


@given(json_values)
def test_nothing_that_a_queue_may_hold_breaks_the_reader(said: Any) -> None:  # noqa: ANN401  whatever JSON holds
    assert isinstance(order_of(said, "geogenius"), Malformed | Order)
