"""The commands about runs and releases, as processes on a real catalog."""

from pathlib import Path

import pytest

from tests.support.command import Command
from tests.support.databases import OWNER, READER, WRITER, PostgresCluster

NOBODY = "11111111-2222-3333-4444-555555555555"


def test_releases_are_imported_published_rolled_back_and_retired(geogenius: Command) -> None:
    assert "is completed" in geogenius("import", geogenius.manifest("a"), "--publish")
    geogenius("import", geogenius.manifest("b"))
    assert geogenius("publish", "world", "b") == "readers of world now see b\n"
    assert geogenius("publish", "world", "b") == "readers of world already see b\n"
    before = geogenius.json("releases", "world")
    assert [(release["release"], release["published"], release["previous"]) for release in before] == [
        ("b", True, False),
        ("a", False, True),
    ]
    assert geogenius("rollback", "world") == "readers of world see b and would see a; repeat with --yes\n"
    assert geogenius.json("releases", "world") == before
    assert geogenius("rollback", "world", "--yes") == "readers of world now see a\n"
    newer = before[0]["release_id"]
    assert geogenius("publish", "--release-id", newer) == "readers of world now see b\n"
    assert geogenius("retire", "world", "--keep", 1) == f"retired {before[1]['release_id']}\n"
    report = geogenius.json("verify", newer)
    assert (report["ok"], report["area_count"], report["areas_by_type"]) == (True, 4, {"country": 4})
    assert "b" in geogenius("releases", "world")
    assert [run["release"] for run in geogenius.json("runs", "world")] == ["b", "a"]


def test_a_failed_run_is_retried_with_a_corrected_file(geogenius: Command) -> None:
    assert "NotJson" in geogenius("import", geogenius.manifest("a", text=b"nonsense"), code=65)
    failed = geogenius.json("runs", "world")[0]["run_id"]
    corrected = geogenius.manifest("a")
    assert "manifest" in geogenius("import", corrected, code=65), "only a retry makes another attempt"
    geogenius("retry", failed, corrected)
    assert [(run["attempt"], run["state"]) for run in geogenius.json("runs", "world")] == [
        (2, "completed"),
        (1, "failed"),
    ]
    assert geogenius.json("status", failed)["error"]["reason"] == "NotJson"
    assert "RunNotFound" in geogenius("retry", NOBODY, corrected, code=65)


def test_gates_are_given_on_the_command_line(geogenius: Command) -> None:
    file = geogenius.manifest("a")
    said = geogenius("import", file, "--min-areas", "country=5", "--require-type", "country", code=65)
    assert "4 areas of type country, at least 5 are required" in said
    assert "no area type city" in geogenius("import", file, "--require-type", "city", code=65)


def test_a_complete_release_is_not_said_to_be_published_when_it_is_not(geogenius: Command) -> None:
    file = geogenius.manifest("a")
    geogenius("import", file)
    assert "is completed" in geogenius("import", file)
    assert "CompletedUnpublished" in geogenius("import", file, "--publish", code=65)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["publish", "world", "a"], 65, "there is no release world/a"),
        (["rollback", "world"], 65, "NoPreviousRelease"),
        (["retire", "world", "--keep", "1"], 65, "UnknownCollection"),
        (["verify", NOBODY], 65, "UnknownRelease"),
        (["cancel", NOBODY], 65, "UnknownRun"),
        (["runs", "world"], 0, "RUN_ID"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_not_there_is_named(geogenius: Command, arguments: list[str], code: int, says: str) -> None:
    assert says in geogenius(*arguments, code=code)


def test_the_owner_gives_rights_and_sweeps_what_was_retired(
    postgres: PostgresCluster, dbname: str, tmp_path: Path
) -> None:
    as_owner = Command(postgres.conninfo(dbname, OWNER), tmp_path)
    assert as_owner("migrate", "--reader", READER, "--writer", WRITER) == "the catalog is up to date\n"
    assert "UnknownRole: the server has no role nobody_here" in as_owner("migrate", "--reader", "nobody_here", code=65)
    as_owner("import", as_owner.manifest("a"))
    as_owner("import", as_owner.manifest("b"), "--publish")
    as_owner("retire", "world", "--keep", 1)
    listed = as_owner("sweep").splitlines()
    assert sorted(line.split("_")[0] for line in listed) == [
        "area",
        "area",
        "boundary",
        "boundary",
        "relation",
        "release",
    ]
    assert {line.split(" ")[1] for line in listed} == {"(retired)"}
    as_writer = Command(postgres.conninfo(dbname, WRITER), tmp_path)
    assert "PermissionMissing" in as_writer("sweep", "--yes", code=64)
    assert as_owner("sweep", "--yes").count(": removed") == 6
    assert as_owner("sweep") == ""
