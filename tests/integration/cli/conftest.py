from pathlib import Path

import pytest

from tests.support.command import Command


@pytest.fixture
def geogenius(conninfo: str, tmp_path: Path) -> Command:
    return Command(conninfo, tmp_path)
