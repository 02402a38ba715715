"""kopf, used for what it is good at: watching. Each event becomes a key; nothing else happens in a handler.

kopf runs in a thread and an event loop of its own, because it cancels foreign tasks of its loop when it stops. It
ends for good on a watch error it does not know; then this watch is over, and the process must end with it.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import kopf

from geogenius.controller.keyed_queue import Key
from geogenius.kube.resources import GROUP, KIND, OUR_JOBS_SELECTOR, PLURAL, VERSION

logger = logging.getLogger(__name__)

SERVER_TIMEOUT_SECONDS = 240
"""A watch is renewed at least this often; an int, because the API server parses `timeoutSeconds` as one."""

BEAT_SECONDS = 1.0

KILL_SECONDS = 30.0
"""A kopf that fails, and then hangs in its own clean-up, kills the process after this long."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What is watched, and as whom. No namespaces means all of them."""

    namespaces: tuple[str, ...]
    kubeconfig: Path | None


class Watch:
    """Feeds keys of changed requests, and of requests whose Job changed, to `add`."""

    def __init__(self, options: WatchOptions, add: Callable[[str, Key], None]) -> None:
        self._options = options
        self._add = add
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)
        self._beat_at = monotonic()

    def start(self) -> None:
        """Begin to watch; the first thing that comes is every existing object."""
        self._beat_at = monotonic()
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Ask kopf to end and wait this long for it."""
        self._stop.set()
        self._thread.join(seconds)

    @property
    def alive(self) -> bool:
        """Whether the watch still runs. Once it has ended it does not come back."""
        return self._thread.is_alive()

    @property
    def ready(self) -> bool:
        """Whether kopf has started watching."""
        return self._ready.is_set()

    def seconds_blocked(self) -> float:
        """How long kopf's event loop has not come around; a watch whose stream is silent does not count as blocked."""
        return monotonic() - self._beat_at if self.alive else 0.0

    def _run(self) -> None:
        try:
            asyncio.run(self._watch())
        except Exception:
            logger.exception("the watch has ended")

    async def _watch(self) -> None:
        beating = asyncio.create_task(self._beat())  # before kopf starts: it cancels what came later when it ends
        try:
            await kopf.operator(
                registry=self._registry(),
                settings=_kopf_settings(),
                clusterwide=not self._options.namespaces,
                namespaces=self._options.namespaces,
                standalone=True,
                stop_flag=self._stop,
                ready_flag=self._ready,
            )
        finally:
            self._stop.set()  # a thread of kopf's waits for it, and the loop's end for that thread, also after an error
            beating.cancel()

    async def _beat(self) -> None:
        while True:
            self._beat_at = monotonic()
            await asyncio.sleep(BEAT_SECONDS)

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        def login(settings: kopf.OperatorSettings, **_: Any) -> kopf.ConnectionInfo | None:  # noqa: ANN401  by keyword
            if self._options.kubeconfig is None:
                return kopf.login_with_service_account(logger=logger, settings=settings)
            os.environ["KUBECONFIG"] = str(self._options.kubeconfig)  # kopf takes the path from nowhere else
            return kopf.login_with_kubeconfig(logger=logger, settings=settings)

        @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
        async def request_changed(namespace: str | None, name: str, **_: Any) -> None:  # noqa: ANN401
            self._add("request", Key(namespace or "", name))

        @kopf.on.event("batch", "v1", "jobs", registry=registry)
        async def job_changed(namespace: str | None, meta: kopf.Meta, **_: Any) -> None:  # noqa: ANN401
            for owner in meta.get("ownerReferences", ()):
                if owner.get("kind") == KIND:
                    self._add("job", Key(namespace or "", owner["name"]))

        return registry


def _kopf_settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True  # no rights on definitions and namespaces are needed
    settings.posting.enabled = False  # kopf's events are not de-duplicated
    settings.watching.server_timeout = SERVER_TIMEOUT_SECONDS
    settings.watching.client_timeout = SERVER_TIMEOUT_SECONDS + 30
    settings.watching.connect_timeout = 5
    settings.watching.reconnect_backoff = 1  # a server that keeps answering 410 would be listed without a pause
    settings.watching.chunk_size = 500
    settings.watching.label_selectors["batch/v1", "jobs"] = OUR_JOBS_SELECTOR
    settings.networking.request_timeout = 20
    settings.networking.connect_timeout = 5
    settings.queueing.exit_timeout = 5
    settings.process.ultimate_exiting_timeout = KILL_SECONDS
    return settings
