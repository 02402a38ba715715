from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import geogenius.cli
from geogenius.cli import cli, main
from geogenius.domain.errors import (
    Cancelled,
    DatabaseUnavailable,
    GeogeniusError,
    InvalidRequest,
    KubernetesUnavailable,
    LeaseLost,
    ManifestInvalid,
    Misconfigured,
)

RUN = "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Misconfigured("x"), 64),
        (click.UsageError("x"), 64),
        (InvalidRequest("x"), 65),
        (KubernetesUnavailable("x"), 69),
        (GeogeniusError("x"), 70),
        (ValueError("x"), 70),
        (DatabaseUnavailable("x"), 75),
        (LeaseLost("x"), 76),
        (Cancelled("x"), 77),
        (click.Abort(), 77),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_every_error_has_its_exit_code(error: Exception, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> None:
        raise error

    monkeypatch.setattr(geogenius.cli, "cli", broken)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code


@pytest.mark.parametrize(
    "arguments",
    [
        ["execute", "no-uuid"],
        ["import", "/does/not/exist"],
        ["import", __file__, "--min-areas", "country"],
        ["import", __file__, "--max-shrink-percent", "101"],
        ["status"],
        ["publish"],
        ["publish", "world"],
        ["publish", "world", "a", "--release-id", RUN],
        ["retire", "world"],
        ["nonsense"],
    ],
    ids=lambda value: " ".join(value[-3:]).replace(__file__, "FILE"),
)
def test_wrong_usage_is_64(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["geogenius", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 64


@pytest.mark.parametrize(
    "command",
    [["controller"], ["migrate"], ["status", RUN], ["execute", RUN], ["cancel", RUN], ["rollback", "world"]],
    ids=" ".join,
)
def test_nothing_starts_without_a_database(command: list[str]) -> None:
    result = CliRunner().invoke(cli, command, env={"GEOGENIUS_DATABASE__URL": None})
    assert isinstance(result.exception, Misconfigured)
    assert "GEOGENIUS_DATABASE__URL is not set" in str(result.exception)


def test_a_manifest_that_is_no_text_is_refused_with_its_position(tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_bytes(b"ok: \xff")
    result = CliRunner().invoke(cli, ["import", str(file)])
    assert isinstance(result.exception, ManifestInvalid)
    assert "byte 4" in str(result.exception)


def test_the_help_names_every_command_and_each_can_be_loaded() -> None:
    said = CliRunner().invoke(cli, ["--help"])

    assert said.exit_code == 0, said.output
    for name in cli.list_commands(click.Context(cli)):
        assert f"  {name} " in said.output
        assert CliRunner().invoke(cli, [name, "--help"]).exit_code == 0, name
