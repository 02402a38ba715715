import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.cluster.contract import ClusterError, checked_name
from tests.cluster.node.containers import archived_images
from tests.cluster.node.layout import Layout
from tests.cluster.node.processes import Process
from tests.cluster.node.subnets import Subnets


@pytest.mark.parametrize("name", ["", "../other", "a/b", "-a", "a-", "A", "a" * 33])
def test_a_name_that_cannot_be_a_folder_of_its_own_is_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="no name for a cluster"):
        checked_name(name)


def test_a_folder_too_long_for_sockets_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="XDG_CACHE_HOME"):
        Layout("name", tmp_path / ("long" * 25), Subnets(1))


def test_a_process_is_known_by_its_number_and_its_start() -> None:
    mine = Process.find(os.getpid())
    assert mine is not None
    assert mine.alive()
    assert not Process(mine.pid, "another start").alive()


def test_a_process_that_ended_is_gone_even_before_its_parent_asks() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert Process.find(child.pid) is None
    child.wait()


def test_an_archive_tells_name_and_digest_of_its_image(tmp_path: Path) -> None:
    name = "localhost/geogenius:test"
    manifest = {"digest": "sha256:1", "annotations": {"org.opencontainers.image.ref.name": name}}
    content = json.dumps({"manifests": [manifest]}).encode()
    with tarfile.open(tmp_path / "image.tar", "w") as archive:
        entry = tarfile.TarInfo("index.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    assert archived_images(tmp_path / "image.tar") == [(name, "sha256:1")]
