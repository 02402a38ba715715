import pytest

from geogenius.domain.errors import Misconfigured
from geogenius.settings import read_settings

SECRET = "Hunter2:/x"


@pytest.mark.parametrize(
    ("variable", "named"),
    [
        ("GEOGENIUS_DATABASE__URLL", "GEOGENIUS_DATABASE__URLL"),
        ("GEOGENIUS_DATABASE__POOL_SIZE", "GEOGENIUS_DATABASE__POOL_SIZE"),
        ("GEOGENIUS_DATABASE__SCHEMA_NAME", "GEOGENIUS_DATABASE__SCHEMA_NAME"),
        ("GEOGENIUS_TELEMETRY__LEVEL", "GEOGENIUS_TELEMETRY__LEVEL"),
        ("GEOGENIUS_KUBERNETES__NAMESPACES", "kubernetes"),
        ("GEOGENIUS_DATABASE", "database"),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_never_shown(
    variable: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, SECRET)
    with pytest.raises(Misconfigured) as refused:
        read_settings()
    assert named in str(refused.value)
    assert "hunter2" not in f"{refused.value!r} {refused.value.__cause__}".lower()
    assert refused.value.__suppress_context__


def test_the_connection_string_is_not_shown_by_a_printed_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEOGENIUS_DATABASE__URL", SECRET)
    settings = read_settings()
    assert SECRET not in repr(settings)
    assert settings.database.url.get_secret_value() == SECRET


def test_namespaces_are_a_list_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEOGENIUS_KUBERNETES__NAMESPACES", '["maps", "parcels"]')
    assert read_settings().kubernetes.namespaces == ("maps", "parcels")


def test_a_group_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEOGENIUS_DATABSE__URL", "postgresql://secret")

    with pytest.raises(Misconfigured) as refused:
        read_settings()

    assert "GEOGENIUS_DATABSE__URL" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_names_that_kubernetes_makes_for_a_service_are_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEOGENIUS_SERVICE_HOST", "10.96.0.7")

    read_settings()
