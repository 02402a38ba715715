"""Clusters by name."""

from tests.cluster.cache import cache_root
from tests.cluster.choice import Platform, platform
from tests.cluster.contract import Cluster
from tests.cluster.kind import KindCluster
from tests.cluster.node.cluster import NodeCluster

DEFAULT_NAME = "geogenius"


def cluster(name: str = DEFAULT_NAME) -> Cluster:
    """A cluster by its name, up or not."""
    match platform():
        case Platform.NODE:
            return NodeCluster(name)
        case Platform.KIND:
            return KindCluster(name)


def known_names() -> list[str]:
    """Names of the clusters that have files in the cache."""
    folder = cache_root() / "clusters"
    return sorted(entry.name for entry in folder.glob("*") if entry.is_dir())
