"""What a runtime runs for each event: `PYTHON -I -S H/bin/hook.py CLIENT_TYPE EVENT`, the host's JSON on stdin.

It passes stdin on to the local service and prints the answer's bytes. Whatever goes wrong: exit code 0, nothing on stderr,
nothing on stdout (at a session start the boot bytes the service left ready), one line in `run/misses.log`. It is compiled
at each start and imports only what is built into Python: `json` or `socket` alone double a bare interpreter's start.
"""
# No helper from disk (contextlib), and module state, since a signal handler has to reach it:
# ruff: noqa: BLE001, PLW0603, SIM105, SLF001

import _signal  # type: ignore[import-not-found]  # typeshed has no stub for it
import posix
import sys
import time

ALLOWED = b"HOME PATH LANG TZ TMPDIR USER LOGNAME XDG_RUNTIME_DIR SSL_CERT_FILE SSL_CERT_DIR".split()
MOST_INPUT = 64 << 20  # above it there is no prompt that a person wrote
SELF_TEST = b'"lore-selftest"'  # the session of `lore doctor`, which wants to see silence where a session would
# One name for SessionStart, session.start and session_start:
BARE = sys.argv[-1].replace(".", "").replace("_", "").replace("-", "").lower()
START = BARE == "sessionstart"
client, event, data = "", "", b""
waiting = "stdin"  # where the time went, should it run out
inside = said = troubled = False  # in our own run folder; stdout was touched; the breaker has counted failures


def append(name: str, line: str) -> None:
    try:
        posix.write(posix.open(name, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT, 0o600), line.encode())
    except OSError:
        pass  # a home we may not write to must not cost the user a message


def say(answer: bytes) -> None:
    global said
    said = True
    while answer:
        answer = answer[posix.write(1, answer) :]


def leave(reason: str) -> None:
    """End without the service's answer, and say so where `lore doctor` looks."""
    try:
        if inside and SELF_TEST not in data:
            append("misses.log", f"{time.time() * 1000:.0f} {client} {event} {reason}\n")
            if reason in {"timeout", "start_failed"}:
                append("breaker", ".")
            if START and not said and b'"resume"' not in data:  # a resumed session has its boot block already
                say(posix.read(posix.open("boot/" + client, posix.O_RDONLY), 1 << 20))
    finally:
        posix._exit(0)


def start() -> None:
    """Start the service in a session of its own, without the host's keys and descriptors; return when it listens."""
    if not posix.access("../bin/service", posix.X_OK):
        leave("no_service")
    ready, done = posix.pipe()
    child = posix.fork()
    if not child:
        try:
            posix.setsid()
            if not posix.fork():
                null = posix.open("/dev/null", posix.O_RDWR)
                for stream in (0, 1, 2):
                    posix.dup2(null, stream)
                posix.set_inheritable(done, True)
                posix.closerange(3, done)
                posix.closerange(done + 1, 1 << 16)
                kept = {k: v for k, v in posix.environ.items() if k in ALLOWED or k[:3] == b"LC_" or k[:5] == b"LORE_"}
                posix.execve("../bin/service", ["service", "--ready-fd", str(done)], kept)
        finally:
            posix._exit(0)
    posix.close(done)
    posix.waitpid(child, 0)
    if not posix.read(ready, 1):
        leave("start_failed")


def ask(body: bytes) -> bytes:
    """One exchange with the service. Raises OSError when nobody answers, ValueError for what is not its answer."""
    service = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    service.connect("service.sock")  # relative, since a socket's path has room for 108 bytes
    left = _signal.getitimer(_signal.ITIMER_REAL)[0] * 1000
    service.sendall(
        f"POST /hooks/v1/{client}/{event} HTTP/1.1\r\nHost: lore\r\nContent-Type: application/json\r\nConnection: close\r\n"
        f"X-Lore-Remaining-Ms: {left:.0f}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    answer = b""
    while chunk := service.recv(1 << 16):
        answer += chunk
        head, complete, text = answer.partition(b"\r\n\r\n")
        if complete and len(text) >= int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0]):
            if head[9:12] != b"200" or text[:1] not in b"{":
                raise ValueError
            return text
        if len(answer) > 1 << 22:
            raise ValueError
    raise OSError


try:
    _signal.signal(_signal.SIGALRM, lambda *_: leave(waiting))
    _signal.setitimer(_signal.ITIMER_REAL, 4.9 if START else 1.9)  # 0.1 s for the interpreter's own start and end
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGALRM])
    client, event = sys.argv[1:]
    if posix.environ.get(b"LORE_DISABLE", b"0") not in {b"", b"0"} or not (client + BARE).isalnum():
        posix._exit(0)
    folder = __file__.removesuffix("/bin/hook.py")
    if folder == __file__:  # run from the package by hand: no home's own copy
        moved = posix.environ.get(b"LORE_HOME") or posix.environ[b"HOME"] + b"/.lore"
        folder = moved.decode("utf-8", "surrogateescape")
    try:
        posix.chdir(folder + "/run")
    except FileNotFoundError:
        posix.mkdir(folder + "/run", 0o700)
        posix.chdir(folder + "/run")
    owner = posix.stat(".")
    if owner.st_uid != posix.geteuid() or owner.st_mode & 0o022:
        posix._exit(0)
    inside = True
    try:
        limits = posix.read(posix.open("limits", posix.O_RDONLY), 64).split()
        limit = min(max(int(limits[START]), 200), 8000) / 1000
        _signal.setitimer(_signal.ITIMER_REAL, limit - 0.1)
    except (OSError, ValueError, IndexError):
        pass
    parts, size = [], 0
    while part := posix.read(0, 1 << 20):
        size += len(part)
        if size <= MOST_INPUT:
            parts.append(part)
    if size > MOST_INPUT:
        leave("too_large")
    data = b"".join(parts)
    waiting = "timeout"
    try:
        counted = posix.stat("breaker")
        troubled = True
        if counted.st_size > 2 and abs(time.time() - counted.st_mtime) < 60:  # noqa: PLR2004  (3 failures, 60 s)
            leave("breaker")
    except OSError:
        pass
    import _socket  # here, since some Pythons have it in a file of its own

    try:
        answer = ask(data)
    except OSError:
        start()
        answer = ask(data)
    waiting = "host"
    say(answer)
    if troubled:
        posix.unlink("breaker")
    posix._exit(0)
except OSError:
    leave("start_failed" if waiting == "timeout" else waiting)
except BaseException:
    leave("bad_answer")
