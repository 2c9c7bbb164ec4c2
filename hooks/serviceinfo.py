"""What a running service writes down about itself, and which release it is. Light: the service reads this before it binds."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass

from lorehooks.core.files import write_whole
from lorehooks.core.home import Home


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """The fields of `run/service.json`. `environment` is the `sys.prefix` it runs from, `started_at` ISO 8601 UTC."""

    port: int
    token: str
    pid: int
    version: str
    started_at: str
    environment: str
    mode: str = "background"
    """`background`, or `foreground` for `lore serve`."""


def read_info(home: Home) -> ServiceInfo | None:
    """What the last service wrote. None when it ended in order or never ran; it does not prove that one runs."""
    try:
        fields = json.loads(home.service_file.read_bytes())
        return ServiceInfo(**{name: fields[name] for name in ServiceInfo.__slots__})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def read_port(home: Home) -> int:
    """The TCP port of the last service, 0 when unknown. It is asked for again, so that open pages keep working."""
    try:
        port = json.loads(home.service_file.read_bytes())["port"]
        return port if isinstance(port, int) and 0 < port < 1 << 16 else 0
    except (OSError, ValueError, TypeError, KeyError):
        return 0


def write_info(home: Home, info: ServiceInfo) -> None:
    """Write `run/service.json` (mode 0600) in one step."""
    write_whole(home.service_file, json.dumps(asdict(info)).encode())


def forget_info(home: Home) -> None:
    """Take pid and token out of `run/service.json` and leave the port for the next start."""
    write_whole(home.service_file, json.dumps({"port": read_port(home)}).encode())


def installed_version() -> str:
    """The installed release, empty when the package is gone.

    Read from the name of the dist-info folder: `importlib.metadata` costs a starting service 25 ms, and its answer would
    not notice an upgrade under a running one.
    """
    for folder in sys.path:
        try:
            names = os.listdir(folder)  # noqa: PTH208  (names are all it needs)
        except OSError:
            continue
        for name in names:
            if name.startswith("lorehooks-") and name.endswith(".dist-info"):
                return name.removeprefix("lorehooks-").removesuffix(".dist-info")
    return ""
