from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.binaries import build_flags, inputs_hash
from tests.cluster.cache import build_once, hash_of


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "kube").mkdir()
    (tmp_path / "go.mod").write_text("require (\n\tk8s.io/kubernetes v1.37.2\n)\n")
    (tmp_path / "go.sum").write_text("sums\n")
    (tmp_path / "kube" / "main.go").write_text("package main\n")
    return tmp_path


def _edit(file: str) -> Callable[[Path], object]:
    return lambda module: (module / file).write_text((module / file).read_text() + "// more\n")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_edit("kube/main.go"), id="a source file"),
        pytest.param(_edit("go.mod"), id="the requirements"),
        pytest.param(_edit("go.sum"), id="the sums"),
        pytest.param(lambda module: (module / "kube" / "more.go").write_text(""), id="a new file"),
        pytest.param(lambda module: (module / "kube" / "main.go").rename(module / "main.go"), id="a move"),
    ],
)
def test_a_change_of_an_input_means_another_build(module: Path, change: Callable[[Path], object]) -> None:
    before = inputs_hash(module)
    change(module)
    assert inputs_hash(module) != before


def test_a_file_that_is_no_input_means_the_same_build(module: Path) -> None:
    before = inputs_hash(module)
    (module / "kube" / "notes.txt").write_text("notes")
    assert inputs_hash(module) == before


def test_the_hash_is_that_of_a_set_of_files(module: Path) -> None:
    files = [module / "go.mod", module / "go.sum"]
    assert hash_of(module, files) == hash_of(module, reversed(files))
    assert hash_of(module, files, "a", "b") != hash_of(module, files, "ab")


def test_programs_report_the_version_that_the_module_requires(module: Path) -> None:
    linker = build_flags(module)[-1]
    assert "version.gitVersion=v1.37.2 " in linker
    assert linker.endswith("version.gitMinor=37")


def test_a_build_happens_once(tmp_path: Path) -> None:
    builds = []

    def build(folder: Path) -> None:
        builds.append(folder)
        (folder / "program").write_text("done")

    for _ in range(2):
        assert (build_once(tmp_path / "final", build) / "program").read_text() == "done"
    assert len(builds) == 1


def test_an_interrupted_build_is_not_taken_for_one(tmp_path: Path) -> None:
    def interrupted(folder: Path) -> None:
        (folder / "program").write_text("half")
        raise KeyboardInterrupt

    def complete(folder: Path) -> None:
        assert list(folder.iterdir()) == []
        (folder / "program").write_text("done")

    with pytest.raises(KeyboardInterrupt):
        build_once(tmp_path / "final", interrupted)
    assert not (tmp_path / "final").exists()
    assert (build_once(tmp_path / "final", complete) / "program").read_text() == "done"


def test_what_a_killed_build_left_goes_with_the_next_one(tmp_path: Path) -> None:
    (tmp_path / ".other.partial").mkdir()
    build_once(tmp_path / "final", lambda folder: (folder / "program").touch())
    assert not (tmp_path / ".other.partial").exists()
