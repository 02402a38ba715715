from collections.abc import Iterator
from pathlib import Path

import pytest

from geogenius.kube.client import KubeClient, Limits
from tests.support.kube_api import KubeApi


@pytest.fixture
def api() -> Iterator[KubeApi]:
    with KubeApi() as running:
        yield running


@pytest.fixture
def client(api: KubeApi, tmp_path: Path) -> Iterator[KubeClient]:
    with KubeClient(api.access(tmp_path), Limits(read_seconds=0.5, total_seconds=2)) as open_client:
        yield open_client
