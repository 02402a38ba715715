"""What a process needs to execute runs, in a form that travels: given by a host to its nursery, over a socket only."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from geogenius.db import Database
from geogenius.domain.manifest import JsonValue
from geogenius.importer.downloader import DownloadPolicy
from geogenius.importer.pipeline import Workplace

EXECUTOR_CONNECTIONS = 4
"""An executor needs one for its phases, and one now and then for what it says beside them."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Where the catalog is, where to work, and how to log. The connection string is a secret and shows nowhere."""

    conninfo: str = field(repr=False)
    schema: str = "geogenius"
    workplace: Workplace = field(default_factory=Workplace)
    log_level: str = "INFO"
    log_format: str = "text"

    def database(self, application_name: str) -> Database:
        """The catalog; nothing is connected before the first use."""
        return Database(
            self.conninfo, application_name=application_name, schema=self.schema, max_size=EXECUTOR_CONNECTIONS
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The whole of it, secret included."""
        place = self.workplace
        return {
            "conninfo": self.conninfo,
            "schema": self.schema,
            "work_dir": str(place.work_dir),
            "artifact_folder": None if place.artifact_folder is None else str(place.artifact_folder),
            "download": asdict(place.download),
            "fail_pause_seconds": place.fail_pause_seconds,
            "log_level": self.log_level,
            "log_format": self.log_format,
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> "Recipe":
        """What `to_json` gave."""
        folder = said["artifact_folder"]
        return cls(
            conninfo=said["conninfo"],
            schema=said["schema"],
            workplace=Workplace(
                work_dir=Path(said["work_dir"]),
                artifact_folder=None if folder is None else Path(folder),
                download=DownloadPolicy(**said["download"]),
                fail_pause_seconds=said["fail_pause_seconds"],
            ),
            log_level=said["log_level"],
            log_format=said["log_format"],
        )
