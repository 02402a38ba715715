import pytest

from geogenius.domain.errors import Misconfigured
from geogenius.wiring.operating import operator_context
from tests.support.databases import PostgresCluster


def test_an_operator_refuses_to_work_on_a_schema_that_is_not_up_to_date(
    postgres: PostgresCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = postgres.create()
    monkeypatch.setenv("GEOGENIUS_DATABASE__URL", postgres.conninfo(name))
    monkeypatch.setenv("GEOGENIUS_JOB__IMAGE", "geogenius:test")

    with pytest.raises(Misconfigured) as refused, operator_context():
        pass

    assert refused.value.reason == "SchemaOutdated"
    postgres.drop(name)
