"""A private PgBouncer in transaction mode before the private server."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

from geogenius.domain.deadline import Deadline
from tests.support.databases import OWNER, WRITER, PostgresCluster

PROGRAM = "/usr/sbin/pgbouncer"
SERVER_CONNECTIONS = 3
SETTINGS = """
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
server_reset_query_always = 0
query_wait_timeout = 20
"""


@contextmanager
def running_bouncer(postgres: PostgresCluster, folder: Path) -> Iterator[int]:
    """The port of a pooler that listens until the end of the block."""
    if not Path(PROGRAM).exists():
        pytest.fail("PgBouncer is not installed; the test needs the package pgbouncer", pytrace=False)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen: int = probe.getsockname()[1]
    ini, users = folder / "pgbouncer.ini", folder / "users"
    users.write_text("".join(f'"{role}" ""\n' for role in ("postgres", OWNER, WRITER)))
    known = {"host": postgres.host, "port": postgres.port, "listen": listen, "size": SERVER_CONNECTIONS, "users": users}
    ini.write_text(SETTINGS.format(**known))
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
    with (folder / "log").open("w") as log, subprocess.Popen([PROGRAM, str(ini)], user=user, stderr=log) as process:
        try:
            _until_it_listens(listen)
            yield listen
        finally:
            process.kill()


def _until_it_listens(port: int) -> None:
    deadline = Deadline.after(10, monotonic)
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if deadline.passed:
                raise
            Event().wait(0.05)
        else:
            return


def through(bouncer: int, dbname: str, user: str) -> str:
    """The connection string that leads through the pooler."""
    return f"host=127.0.0.1 port={bouncer} user={user} dbname={dbname}"
