"""What is left of executors that died: whose files are removed, and in which words their death is told."""

from pathlib import Path
from uuid import uuid4

from geogenius.domain.run import ExecutorId, Fence, RunId
from geogenius.importer.guardian import death
from geogenius.importer.pipeline import remove_folders_of
from geogenius.processes.messages import Ended


def test_the_files_of_another_executor_of_the_same_run_are_left_alone(tmp_path: Path) -> None:
    run_id = RunId(uuid4())
    dead, alive = (Fence(run_id, ExecutorId(uuid4())) for _ in range(2))
    folders = [tmp_path / f"run_{run_id.hex}_{fence.executor_id.hex}_x" for fence in (dead, alive)]
    for folder in folders:
        folder.mkdir()

    remove_folders_of(dead, tmp_path)

    assert [folder.exists() for folder in folders] == [False, True]


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    assert death(Ended(RunId(uuid4()), None, 40, None)).message.endswith("was killed by signal 40")
    assert death(Ended(RunId(uuid4()), None, 9, None)).message.endswith("was killed by SIGKILL")
