"""Programs of all kinds as hosts: plain scripts, web servers, and programs that fork or are killed."""

import http.client
import json
import os
import signal
import socket
import sys
from pathlib import Path

from typing_extensions import override

from geogenius.domain.run import RunId
from geogenius.importer.recipe import Recipe
from geogenius.testing import CatalogBench
from tests.support.host_processes import (
    SECONDS,
    SlowRuns,
    alive,
    family_of,
    nurseries_of,
    nursery_of,
    reason_of,
    running_host,
    running_script,
    until,
    until_childless,
)

BEGIN = """
import json, os, sys
from datetime import timedelta
from pathlib import Path
from time import sleep
from uuid import UUID
from geogenius.catalog.runs import Runs
from geogenius.importer.recipe import Recipe
from geogenius.processes.supervisor import NURSERY, TaskSupervisor
from geogenius.runners.task import TaskRunner

def say(**words):
    print(json.dumps(words), flush=True)

recipe = json.loads(Path(sys.argv[1]).read_text())
supervisor = TaskSupervisor(NURSERY, recipe, grace=timedelta(seconds=5))
runner = TaskRunner(supervisor)
run_ids = [UUID(word) for word in sys.argv[2:]]

def until_ended(run_id):
    database = Recipe.from_json(recipe).database("host")
    while not (run := Runs(database).get(run_id)).state.terminal:
        sleep(0.02)
    database.close()
    return run.state.value
"""
"""How every script begins: without a guard for its main module."""

PLAIN = """
say(began=type(runner.enqueue(run_ids[0], {})).__name__)
say(state=until_ended(run_ids[0]))
supervisor.stop()
"""

FORGETFUL = """
say(began=type(runner.enqueue(run_ids[0], {})).__name__)
say(state=until_ended(run_ids[0]))
"""

WAITING = """
say(began=type(runner.enqueue(run_ids[0], {})).__name__)
sys.stdin.readline()
"""

PERSISTENT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may have it ignored
say(began=type(runner.enqueue(run_ids[0], {})).__name__)
try:
    sys.stdin.readline()
except KeyboardInterrupt:
    say(heard="Ctrl-C")
say(state=until_ended(run_ids[0]))
supervisor.stop()
"""

BLOCKING = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
say(began=type(runner.enqueue(run_ids[0], {})).__name__)
say(state=until_ended(run_ids[0]))
while supervisor.running:
    sleep(0.02)
say(running=supervisor.running)
"""

UNHEARD = """
unheard, errors = os.pipe()
os.dup2(errors, 2)
os.close(unheard)
from queue import SimpleQueue
ends = SimpleQueue()
supervisor.submit(run_ids[0], ended=ends.put)
ended = ends.get(timeout=20)
say(exit_code=ended.exit_code, signal=ended.signal)
supervisor.stop()
"""

FORKING = """
say(began=type(runner.enqueue(run_ids[0], {})).__name__)
pid = os.fork()
if pid:
    say(child=pid)
    while True:
        sleep(600)
sys.stdin.readline()
say(began=type(runner.enqueue(run_ids[1], {})).__name__)
say(state=until_ended(run_ids[1]))
sys.stdin.readline()
supervisor.stop()
"""

ASGI = """
import asyncio, json, os
from datetime import timedelta
from pathlib import Path
from uuid import UUID
from geogenius.processes.supervisor import NURSERY, TaskSupervisor
from geogenius.runners.task import TaskRunner

recipe = json.loads(Path(os.environ["RECIPE_FILE"]).read_text())
supervisor = TaskSupervisor(NURSERY, recipe, max_children=2, grace=timedelta(seconds=5))
runner = TaskRunner(supervisor)

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return await live(receive, send)
    answer = await asyncio.to_thread(runner.enqueue, UUID(scope["path"].strip("/")), {})
    await send({"type": "http.response.start", "status": 202, "headers": []})
    await send({"type": "http.response.body", "body": type(answer).__name__.encode()})

async def live(receive, send):
    await receive()
    await asyncio.to_thread(supervisor.start)
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await asyncio.to_thread(supervisor.stop)
    await send({"type": "lifespan.shutdown.complete"})
"""

UVICORN = """
import os, sys
os.environ["RECIPE_FILE"] = sys.argv[1]
options = ["--uds", "web.sock", "--log-level", "warning"]
os.execv(sys.executable, [sys.executable, "-m", "uvicorn", "web_host:app", *options])
"""


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a socket in the file system: no port to guess."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=SECONDS)
        self._path = path

    @override
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(str(self._path))


def quick_run(bench: CatalogBench) -> RunId:
    return bench.register(bench.intent("task")).run_id


def test_a_plain_script_imports_and_its_main_module_runs_once(
    tmp_path: Path, recipe: Recipe, bench: CatalogBench
) -> None:
    run_id = quick_run(bench)
    with running_script(tmp_path, recipe, f"{BEGIN}\nsay(main=__name__){PLAIN}", run_id) as host:
        output, _ = host.process.communicate(timeout=SECONDS)
    assert [json.loads(line) for line in output.splitlines()] == [
        {"main": "__main__"},
        {"began": "Accepted"},
        {"state": "completed"},
    ]
    assert (host.process.returncode, "Traceback" in host.errors.read_text()) == (0, False)
    assert bench.run(run_id).state == "completed"


def test_a_script_that_forgets_to_stop_its_supervisor_ends_all_the_same(
    tmp_path: Path, recipe: Recipe, bench: CatalogBench
) -> None:
    with running_script(tmp_path, recipe, BEGIN + FORGETFUL, quick_run(bench)) as host:
        assert host.said() == {"began": "Accepted"}
        (nursery,) = nurseries_of(host.pid)
        assert host.said() == {"state": "completed"}
        assert host.process.wait(SECONDS) == 0
        until_childless(nursery)


def test_nothing_outlives_a_host_that_was_killed(
    tmp_path: Path, recipe: Recipe, slow: SlowRuns, bench: CatalogBench
) -> None:
    run_id = slow.register()
    with running_script(tmp_path, recipe, BEGIN + WAITING, run_id) as host:
        assert host.said() == {"began": "Accepted"}
        slow.until_under_way(run_id)
        nursery = nursery_of(host.pid)
        assert len(family_of(nursery)) == 2
        host.kill()
        until_childless(nursery)
        run = bench.run(run_id)
        assert (run.state, reason_of(run)) == ("failed", "SupervisorLost")


def test_a_ctrl_c_belongs_to_the_host(tmp_path: Path, recipe: Recipe, slow: SlowRuns, bench: CatalogBench) -> None:
    run_id = slow.register()
    with running_script(tmp_path, recipe, BEGIN + PERSISTENT, run_id) as host:
        assert host.said() == {"began": "Accepted"}
        slow.until_under_way(run_id)
        os.killpg(host.pid, signal.SIGINT)
        assert host.said() == {"heard": "Ctrl-C"}
        slow.let_go(run_id)
        assert host.said() == {"state": "completed"}
        assert host.process.wait(SECONDS) == 0
    assert bench.run(run_id).state == "completed"


def test_a_host_that_blocks_all_signals_learns_of_the_end(tmp_path: Path, recipe: Recipe, bench: CatalogBench) -> None:
    with running_script(tmp_path, recipe, BEGIN + BLOCKING, quick_run(bench)) as host:
        assert [host.said(), host.said()] == [{"began": "Accepted"}, {"state": "completed"}]
        assert host.said() == {"running": 0}


def test_a_host_whose_errors_nobody_reads_any_more_is_told_the_true_end(
    tmp_path: Path, recipe: Recipe, bench: CatalogBench
) -> None:
    run_id = quick_run(bench)
    with running_script(tmp_path, recipe, BEGIN + UNHEARD, run_id) as host:
        assert host.said() == {"exit_code": 0, "signal": None}
    assert bench.run(run_id).state == "completed"


def test_a_fork_of_the_host_keeps_nothing_alive_and_has_a_nursery_of_its_own(
    tmp_path: Path, recipe: Recipe, slow: SlowRuns, bench: CatalogBench
) -> None:
    first, second = slow.register(), quick_run(bench)
    with running_script(tmp_path, recipe, BEGIN + FORKING, first, second) as host:
        assert host.said() == {"began": "Accepted"}
        fork = host.said()["child"]
        slow.until_under_way(first)
        nursery = nursery_of(host.pid)
        host.kill()
        until_childless(nursery)
        assert (alive(fork), reason_of(bench.run(first))) == (True, "SupervisorLost")
        host.tell("go on")
        assert [host.said(), host.said()] == [{"began": "Accepted"}, {"state": "completed"}]
        others = nurseries_of(fork)
        assert len(others) == 1
        host.tell("go on")
        until_childless(*others)
        until(lambda: not alive(fork), "the fork has ended")


def test_a_web_server_starts_imports_and_ends_with_all_of_them(
    tmp_path: Path, recipe: Recipe, slow: SlowRuns, bench: CatalogBench
) -> None:
    (tmp_path / "web_host.py").write_text(ASGI)
    quick, lasting, path = quick_run(bench), slow.register(), tmp_path / "web.sock"

    def ask(run_id: RunId) -> tuple[int, bytes]:
        connection = UnixConnection(path)
        try:
            connection.request("POST", f"/{run_id}")
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    with running_host(tmp_path, recipe, [sys.executable, "-c", UVICORN]) as host:
        until(path.exists, "the server listens")
        assert ask(quick) == (202, b"Accepted")
        assert bench.ended(quick).state == "completed"
        assert ask(lasting) == (202, b"Accepted")
        slow.until_under_way(lasting)
        nursery = nursery_of(host.pid)
        host.kill(signal.SIGTERM)
        until_childless(nursery)
        assert not alive(host.pid)
    assert reason_of(bench.run(lasting)) == "SupervisorStopped"
