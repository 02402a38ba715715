"""Logging: set up once at the start of a program."""

import json
import logging
import sys

from typing_extensions import override

IDENTITIES = ("run_id", "executor_id")
"""What ties a line to a run: given as `extra`, shown in both forms."""


class TextFormatter(logging.Formatter):
    """A line for people, with the run it is about."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        run = getattr(record, "run_id", None)
        line = super().format(record)
        return line if run is None else f"{line} [run {run}]"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {name: str(getattr(record, name)) for name in IDENTITIES if hasattr(record, name)}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def configure_logging(level: str, form: str) -> None:
    """Send log lines to standard error in the chosen form. A second call replaces the first."""
    handler = logging.StreamHandler(sys.stderr)
    text = TextFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if form == "json" else text)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("kopf").setLevel(max(logging.WARNING, logging.getLevelName(level)))
