"""Stands in for `ssh` in tests: runs the remote command here, with the far user's HOME, and forwards Unix sockets.

Environment: FAKE_SSH_HOME is the far HOME, FAKE_SSH_LOG gets one JSON line of arguments and agent per run, FAKE_SSH_REFUSE a message
to fail with, as a host that cannot be reached would.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading

TAKES_VALUE = ("-L", "-o", "-p", "-S")


def pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def forward(near: str, far: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(near)  # noqa: PTH108
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(near)
    listener.listen()

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            beyond = socket.socket(socket.AF_UNIX)
            try:
                beyond.connect(far)
            except OSError:
                connection.close()
                continue
            for pair in ((connection, beyond), (beyond, connection)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def main() -> int:
    arguments = sys.argv[1:]
    with open(os.environ["FAKE_SSH_LOG"], "a", encoding="utf-8") as log:  # noqa: PTH123
        log.write(json.dumps([arguments, os.environ.get("SSH_AUTH_SOCK", "")]) + "\n")
    if refusal := os.environ.get("FAKE_SSH_REFUSE"):
        print(refusal, file=sys.stderr)
        return 255
    words = iter(arguments)
    rest: list[str] = []
    for word in words:
        if word in TAKES_VALUE:
            value = next(words)
            if word == "-L":
                forward(*value.split(":", 1))
        elif not word.startswith("-") or word == "--":
            rest = [*([] if word == "--" else [word]), *words]
    environment = {"HOME": os.environ["FAKE_SSH_HOME"], "PATH": os.environ["PATH"]}
    return subprocess.run(["/bin/sh", "-c", rest[1]], env=environment, check=False).returncode


if __name__ == "__main__":
    code = main()
    os._exit(code)
