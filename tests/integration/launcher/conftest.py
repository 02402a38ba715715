from collections.abc import Iterator
from pathlib import Path

import pytest

from geogenius.db import Database
from tests.support.request_desk import RequestDesk, request_desk


@pytest.fixture
def desk(database: Database, tmp_path: Path) -> Iterator[RequestDesk]:
    with request_desk(database, tmp_path) as desk:
        yield desk
