"""The command line as a process on a real catalog."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from geogenius.domain.manifest import Artifact
from geogenius.manifest import normal_form
from tests.support.geojson import a_manifest, collection, squares


class Command:
    """`geogenius`, with the settings of one catalog and a folder of supplied files."""

    def __init__(self, conninfo: str, folder: Path, **settings: str) -> None:
        self._folder = folder
        self._environment = {
            **os.environ,
            "GEOGENIUS_DATABASE__URL": conninfo,
            "GEOGENIUS_IMPORTER__ARTIFACT_DIR": str(folder),
            "GEOGENIUS_IMPORTER__WORK_DIR": str(folder / "work"),
            **settings,
        }

    def __call__(self, *arguments: object, code: int = 0) -> str:
        """What the command prints; it must end with this exit code."""
        command = [sys.executable, "-m", "geogenius", *map(str, arguments)]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == code, done.stderr
        return done.stdout + (done.stderr if code else "")

    def json(self, *arguments: object, code: int = 0) -> Any:  # noqa: ANN401  JSON
        return json.loads(self(*arguments, "--output", "json", code=code))

    def manifest(self, release: str, areas: int = 4, text: bytes | None = None) -> Path:
        """A file that imports so many areas as this release."""
        content = collection(squares(areas)) if text is None else text
        (self._folder / f"{release}.geojson").write_bytes(content)
        artifact = Artifact(f"{release}.geojson", "geojson", hashlib.sha256(content).hexdigest(), len(content), None)
        file = self._folder / f"{release}.json"
        file.write_text(json.dumps(normal_form(a_manifest(artifact, release=release))))
        return file
