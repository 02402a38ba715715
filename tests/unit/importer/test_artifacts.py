import hashlib
import time
from pathlib import Path

import pytest

from geogenius.domain.errors import DataRefused, InvalidRequest
from geogenius.domain.manifest import Artifact
from geogenius.importer.artifacts import ArtifactStore
from geogenius.importer.downloader import Downloader, DownloadPolicy, Surroundings
from tests.support.web import ok, serving

BODY = b"x" * 600_000
SHA256 = hashlib.sha256(BODY).hexdigest()


def store(folder: Path | None, reported: list[int]) -> ArtifactStore:
    surroundings = Surroundings(time.monotonic, lambda _: None, reported.append)
    policy = DownloadPolicy(allow_http=True, allow_private=True)
    return ArtifactStore(folder, Downloader(policy, surroundings), reported.append)


def supplied(sha256: str = SHA256, size: int = len(BODY)) -> Artifact:
    return Artifact("a.geojson", "geojson", sha256, size, None)


def test_a_supplied_file_is_used_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "a.geojson").write_bytes(BODY)
    reported: list[int] = []
    obtained = store(tmp_path, reported).obtain(supplied(), tmp_path / "work")
    assert (obtained.path, obtained.downloaded, obtained.observed.sha256) == (tmp_path / "a.geojson", False, SHA256)
    assert sum(reported) == len(BODY)


def test_a_file_with_a_url_is_downloaded_into_the_work_folder(tmp_path: Path) -> None:
    with serving(ok(BODY)) as server:
        wanted = Artifact("a.geojson", "geojson", SHA256, len(BODY), server.url())
        obtained = store(None, []).obtain(wanted, tmp_path)
    assert (obtained.path, obtained.downloaded) == (tmp_path / "a.geojson", True)


@pytest.mark.parametrize("url", [False, True])
def test_a_file_that_was_changed_since_it_was_checked_is_refused(tmp_path: Path, *, url: bool) -> None:
    (tmp_path / "a.geojson").write_bytes(BODY)
    with serving(ok(BODY)) as server:
        wanted = Artifact("a.geojson", "geojson", SHA256, len(BODY), server.url() if url else None)
        obtained = store(tmp_path, []).obtain(wanted, tmp_path)
    obtained.check_unchanged()
    (tmp_path / "other").write_bytes(BODY)
    (tmp_path / "other").replace(obtained.path)
    for _ in range(2):
        with pytest.raises(DataRefused, match=r"a\.geojson was changed or replaced") as caught:
            obtained.check_unchanged()
        assert caught.value.reason == "ArtifactChanged"
        obtained.path.unlink(missing_ok=True)


def test_a_missing_file_is_named_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=f"there is no file {tmp_path}/a.geojson") as caught:
        store(tmp_path, []).obtain(supplied(), tmp_path)
    assert caught.value.reason == "ArtifactMissing"


def test_without_a_folder_a_supplied_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no folder of such files is configured"):
        store(None, []).obtain(supplied(), tmp_path)


@pytest.mark.parametrize(
    ("wanted", "reason"), [(supplied(sha256="0" * 64), "ChecksumMismatch"), (supplied(size=7), "SizeMismatch")]
)
def test_a_supplied_file_other_than_reviewed_is_refused(tmp_path: Path, wanted: Artifact, reason: str) -> None:
    (tmp_path / "a.geojson").write_bytes(BODY)
    with pytest.raises(DataRefused, match=r"a\.geojson has") as caught:
        store(tmp_path, []).obtain(wanted, tmp_path)
    assert caught.value.reason == reason
