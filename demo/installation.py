"""The product on a test cluster, installed as a user would: helm, kubectl, and nothing else."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.contract import Cluster
from tests.cluster.images.catalog import postgis_image, product_image
from tests.cluster.images.names import PRODUCT

CHECKOUT = Path(__file__).resolve().parents[1]
CHART = CHECKOUT / "charts" / "geogenius"
POSTGIS = CHECKOUT / "demo" / "manifests" / "postgis.yaml"


class InstallationError(Exception):
    """A command of the installation failed; the message holds what it said."""


@dataclass(frozen=True, slots=True)
class Installation:
    """A PostGIS and a release of the chart in one namespace of a cluster."""

    cluster: Cluster
    namespace: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def load_images(self) -> None:
        """Build what is not built and make it known to the cluster."""
        for archive in (postgis_image(), product_image()):
            self.cluster.load_image(archive)

    def database(self) -> None:
        """Start a PostGIS with its Secrets and wait until it is ready. A second time changes nothing."""
        self.kubectl("create", "namespace", self.namespace, check=False)
        self.kubectl("apply", "-f", str(POSTGIS))
        self.kubectl("rollout", "status", "deployment/postgis", "--timeout=120s")

    def operator(self) -> None:
        """Install or upgrade the chart and wait until the operator is ready."""
        repository, _, tag = PRODUCT.rpartition(":")
        values = json.loads(json.dumps(self.values))
        values["image"] = {"repository": repository, "tag": tag}
        # The tag stays when the image changes; this restarts the operator then.
        built = {"geogenius.io/built": product_image().parent.name}
        values["operator"] = {**values.get("operator", {}), "podAnnotations": built}
        release = ["upgrade", "--install", "geogenius", str(CHART), "--namespace", self.namespace, "--values", "-"]
        self._run([*self.cluster.helm, *release, "--wait", "--timeout", "180s"], stdin=json.dumps(values))

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """Run kubectl in the namespace; what it printed. Raises InstallationError where it fails."""
        return self._run([*self.cluster.kubectl, "--namespace", self.namespace, *arguments], stdin=stdin, check=check)

    def query(self, statement: str, **variables: str) -> str:
        """What psql prints for a statement in the catalog's schema; it reads a variable as `:'name'`."""
        psql = ["psql", "-q", "-X", "-h", "/tmp", "-U", "geogenius", "-v", "ON_ERROR_STOP=1"]  # noqa: S108  in the pod
        given = [part for name, value in variables.items() for part in ("-v", f"{name}={value}")]
        settings = "PGOPTIONS=-c search_path=geogenius,public"
        return self.kubectl("exec", "-i", "deployment/postgis", "--", "env", settings, *psql, *given, stdin=statement)

    def _run(self, command: list[str], *, stdin: str | None = None, check: bool = True) -> str:
        ended = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)  # noqa: S603
        if check and ended.returncode != 0:
            raise InstallationError(f"{' '.join(command)}\n{ended.stdout}{ended.stderr}")
        return ended.stdout
