"""One cluster, one PostGIS and one operator for the session; a namespace for each test."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from uuid import uuid4

import pytest

from demo.installation import Installation
from tests.cluster.contract import Cluster
from tests.cluster.providers import cluster as cluster_named
from tests.support.desk import Desk
from tests.support.file_server import FileServer, serving_files

NAME = "e2e"
SYSTEM = "geogenius-system"
VALUES = {
    "importer": {"download": {"allowHttp": True, "allowPrivateAddresses": True}},
    "operator": {"tickSeconds": 0.5, "resyncSeconds": 10},
}
DATABASE_SECRET = """
apiVersion: v1
kind: Secret
metadata: {{name: geogenius-database}}
stringData: {{url: "postgresql://geogenius:demo-password@postgis.{system}:5432/geogenius"}}
"""


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of the session's own; where tests failed, its logs are kept in `build/e2e-logs`."""
    cluster = cluster_named(NAME)
    cluster.up()
    yield cluster
    if request.session.testsfailed:
        cluster.collect_logs(Path("build") / "e2e-logs")
    if not os.environ.get("GEOGENIUS_KEEP_CLUSTER"):
        cluster.down()


@pytest.fixture(scope="session")
def installation(cluster: Cluster) -> Installation:
    """The chart as a user installs it, with the definition, watching all namespaces."""
    installation = Installation(cluster, SYSTEM, VALUES)
    installation.load_images()
    installation.database()
    installation.operator()
    return installation


@pytest.fixture
def kubectl(installation: Installation) -> Callable[..., CompletedProcess[str]]:
    """kubectl as it is: nothing is raised."""

    def run(*arguments: str, stdin: str | None = None) -> CompletedProcess[str]:
        command = [*installation.cluster.kubectl, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def namespace(installation: Installation, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace with the Secret of the database, removed in the background afterwards."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.originalname.removeprefix("test_").lower())
    name = f"{words[:40].strip('-')}-{uuid4().hex[:6]}"
    installation.kubectl("create", "namespace", name)
    installation.kubectl(f"--namespace={name}", "apply", "-f", "-", stdin=DATABASE_SECRET.format(system=SYSTEM))
    yield name
    installation.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def desk(installation: Installation, namespace: str) -> Desk:
    return Desk(installation, namespace)


@pytest.fixture
def files(cluster: Cluster) -> Iterator[FileServer]:
    """A web server that pods reach."""
    with serving_files(cluster.host_address) as server:
        yield server
