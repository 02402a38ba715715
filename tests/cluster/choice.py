"""The choice of what a cluster runs on; images are built to fit."""

import os
import shutil
from enum import StrEnum

from tests.cluster.contract import ClusterError
from tests.cluster.steps import succeeds

VARIABLE = "GEOGENIUS_CLUSTER"
"""Environment variable that overrides the choice."""


class Platform(StrEnum):
    """What a cluster runs on."""

    NODE = "node"
    """Processes of this machine, images by buildah."""
    KIND = "kind"
    """A container, images by Docker."""


def platform() -> Platform:
    """Kind where it and a Docker daemon are there, else a node of this machine."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return Platform.KIND if _kind_works() else Platform.NODE
    try:
        return Platform(wanted)
    except ValueError:
        raise ClusterError(f"{VARIABLE} is {wanted!r}; it must be {' or '.join(Platform)}") from None


def _kind_works() -> bool:
    """A Docker client without a daemon is common, so the daemon is asked."""
    return all(shutil.which(program) for program in ("kind", "docker")) and succeeds("docker", "info")
