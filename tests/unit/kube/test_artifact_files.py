import pytest

from geogenius.domain.errors import InvalidRequest
from geogenius.kube.artifact_files import ArtifactFiles, ClaimFiles, ConfigMapFiles, FileItem, mounted
from geogenius.kube.resources import objects_at


def test_config_maps_alone_are_projected_into_one_folder() -> None:
    volumes, mounts = mounted((ConfigMapFiles("a"), ConfigMapFiles("b", (FileItem("k", "folder/k.json"),))))

    assert len(volumes) == 1
    assert mounts == [{"name": "artifacts", "mountPath": "/artifacts", "readOnly": True}]


def test_beside_a_claim_every_file_is_mounted_on_its_own() -> None:
    files = (ConfigMapFiles("a", (FileItem("k", "one.json"),)), ClaimFiles("c", (FileItem("deep/2.json", "two.json"),)))

    _, mounts = mounted(files)

    paths = {(item["mountPath"], item["subPath"]) for item in objects_at({"mounts": mounts}, "mounts")}
    assert paths == {("/artifacts/one.json", "one.json"), ("/artifacts/two.json", "deep/2.json")}


def test_no_files_need_no_volume() -> None:
    assert mounted(()) == ([], [])


@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param((ConfigMapFiles("a", (FileItem("k", "../etc/passwd"),)),), "plain relative", id="climbing out"),
        pytest.param((ConfigMapFiles("a", (FileItem("k", "/etc/passwd"),)),), "plain relative", id="absolute"),
        pytest.param((ConfigMapFiles("a", (FileItem("k", ""),)),), "plain relative", id="empty"),
        pytest.param((ClaimFiles("c", (FileItem("../x", "x"),)),), "plain relative", id="climbing out of the claim"),
        pytest.param(
            (ConfigMapFiles("a", (FileItem("k", "x"),)), ClaimFiles("c", (FileItem("x", "x"),))),
            "given twice: x",
            id="twice",
        ),
        pytest.param((ClaimFiles("whole"), ClaimFiles("other")), "whole must list", id="two whole claims"),
        pytest.param(
            (ClaimFiles("c", (FileItem("x", "x"),)), ConfigMapFiles("a")), "a must list", id="whole map and claim"
        ),
    ],
)
def test_what_cannot_be_mounted_is_refused_with_its_name(files: ArtifactFiles, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as caught:
        mounted(files)

    assert caught.value.reason == "FilesInvalid"
