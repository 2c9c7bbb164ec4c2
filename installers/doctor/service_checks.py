"""The local service: whether it runs and answers, of which release, who sits on its port, what it said last."""

from __future__ import annotations

import http.client
import json
import socket
import sys
import time
from collections.abc import Iterator

from lorehooks.core.home import Home
from lorehooks.hooks import service, serviceinfo
from lorehooks.hooks.serviceinfo import ServiceInfo
from lorehooks.installers.doctor.finding import Finding, note, ok, problem
from lorehooks.installers.doctor.subject import Subject

AREA = "service"
RESTART = "lore service restart"
_SECONDS = 2.0
_BREAKER_FAILURES, _BREAKER_SECONDS = 3, 60
"""As in the hook program: so many failures make it leave the service alone for so long."""


def check(subject: Subject) -> Iterator[Finding]:
    """What a hook finds when it knocks."""
    if not subject.is_there:
        return
    now, home = subject.service, subject.home
    if not now.running:
        yield from _stopped(home)
    elif not now.answering:
        of = f" (pid {now.info.pid})" if now.info else ""
        text = f"The service{of} runs and does not answer, so prompts go without memory"
        yield problem(AREA, "hangs", text, RESTART, fixable=True)
    elif now.info is None:
        yield problem(
            AREA, "no_info", f"The service runs and {home.service_file} says nothing of it", RESTART, fixable=True
        )
    else:
        yield from _running(now.info)
    yield from _breaker(home)


def _running(info: ServiceInfo) -> Iterator[Finding]:
    installed = serviceinfo.installed_version()
    background = info.mode == "background"
    if info.version != installed:
        text = f"The service is of release {info.version}, and {installed} is installed"
        yield note(AREA, "other_version", text, RESTART, fixable=background)
    if info.environment != sys.prefix:
        text = f"The service runs from {info.environment}, and this command from {sys.prefix}"
        yield note(AREA, "other_environment", text, RESTART)
    if background and not _answers_as_ours(info.port):  # `lore serve` may listen elsewhere
        text = f"On 127.0.0.1:{info.port}, where the service should listen, it does not answer"
        yield problem(AREA, "port", text, RESTART, fixable=True)
    kind = "" if background else " (lore serve)"
    place = f"pid {info.pid}, 127.0.0.1:{info.port}, release {info.version} from {info.environment}"
    yield ok(AREA, "runs", f"Runs{kind} and answers: {place}")


def _stopped(home: Home) -> Iterator[Finding]:
    left = serviceinfo.read_info(home)
    if left is not None:
        text = f"The last service (pid {left.pid}) was killed or lost its machine; the next hook starts another one"
        yield note(AREA, "killed", text, "lore service start")
    elif home.socket.exists():
        text = f"A service that is gone left {home.socket} behind; the next hook replaces it"
        yield note(AREA, "stale_socket", text, "lore service start")
    else:
        yield ok(AREA, "stopped", "Does not run; the next hook starts it")
    said = service.last_error(home)
    if said:
        yield note(AREA, "last_error", f"The last service ended with an error: {said}", f"see {home.log}")
    port = serviceinfo.read_port(home)
    if port and _somebody_listens(port):
        text = f"Another program listens on 127.0.0.1:{port}, the last service's port; the next one takes a free one"
        yield note(AREA, "foreign_listener", f"{text}, and nothing of ours is sent there", "lore service start")


def _breaker(home: Home) -> Iterator[Finding]:
    try:
        counted = (home.run / "breaker").stat()
    except OSError:
        return
    if counted.st_size >= _BREAKER_FAILURES and abs(time.time() - counted.st_mtime) < _BREAKER_SECONDS:
        text = f"Hooks leave the service alone for {_BREAKER_SECONDS} s after {counted.st_size} failures in a row"
        yield problem(AREA, "breaker", text, fixable=True)


def _somebody_listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=_SECONDS).close()
    except OSError:
        return False
    return True


def _answers_as_ours(port: int) -> bool:
    """Asked without the token: whoever listens there is not yet known."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request("GET", "/api/health")
        found = json.loads(connection.getresponse().read(65_536))
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return isinstance(found, dict) and found.get("server") == "lorehooks"
