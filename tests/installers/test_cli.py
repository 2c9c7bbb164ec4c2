"""The `lore` command as a whole: how it starts, fails, prints; without a memory behind it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from lorehooks.clients import output
from lorehooks.core.errors import LoreError, NotFoundError
from lorehooks.installers import cli, clidocs

LORE = [sys.executable, "-m", "lorehooks.installers.cli"]
DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


@pytest.fixture
def lore(capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("LORE_HOME", str(tmp_path / "lore"))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(arguments)
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def failing(monkeypatch):
    """Make `lore fail` raise what a test wants."""

    def install(error: BaseException) -> None:
        @click.command()
        @cli_json
        def fail() -> None:
            raise error

        module = type(sys)("failing_command")
        module.fail = fail
        monkeypatch.setitem(sys.modules, "failing_command", module)
        monkeypatch.setattr(cli, "MENU", {**cli.MENU, "Test": {"fail": ("failing_command:fail", "Fails.")}})

    from lorehooks.clients.command import json_option as cli_json

    return install


def test_every_command_is_there_and_listed_with_the_first_sentence_of_its_own_help():
    for section in cli.MENU.values():
        for name, (_, listed) in section.items():
            command = cli.lore.get_command(click.Context(cli.lore), name)
            assert command is not None
            assert command.name == name
            assert " ".join(command.help.split()).startswith(listed.rstrip(".")), name


def test_every_command_takes_json():
    for context in clidocs.contexts(cli.lore):
        if not isinstance(context.command, click.Group):
            names = {name for parameter in context.command.params for name in parameter.opts}
            assert "--json" in names, context.command_path


def test_help_imports_no_command():
    code = "import sys; from lorehooks.installers import cli; cli.run(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stderr
    assert "lorehooks.clients.node_commands" not in loaded
    for heavy in ("httpx", "pydantic", "numpy", "asyncio", "sqlite3"):
        assert f"'{heavy}'" not in loaded


def test_a_bare_name_of_a_group_prints_its_help(lore):
    for arguments in ((), ("node",)):
        code, out, err = lore(*arguments)
        assert (code, err) == (0, "")
        assert out.startswith("Usage: lore")


def test_a_mistyped_command_names_the_near_ones(lore):
    code, out, err = lore("nod")
    assert (code, out) == (cli.USAGE, "")
    assert err == "Error: There is no command 'lore nod'. Did you mean node? (lore --help)\n"


def test_a_wrong_option_is_one_line_and_exit_code_2(lore):
    code, _, err = lore("node", "search", "x", "--nonsense")
    assert code == cli.USAGE
    assert err.count("\n") == 1
    assert err.endswith("(lore node search --help)\n")


def test_a_usage_error_is_json_when_json_was_asked_for(lore):
    code, out, err = lore("node", "search", "--json")
    assert (code, err) == (cli.USAGE, "")
    assert json.loads(out)["error"]["code"] == "usage"


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (LoreError("The disk is full", hint="free some"), cli.FAILED, "Error: The disk is full (free some)\n"),
        (NotFoundError("No such thing"), cli.NOT_FOUND, "Error: No such thing\n"),
        (LoreError("two\nlines"), cli.FAILED, "Error: two lines\n"),
        (KeyboardInterrupt(), cli.INTERRUPTED, ""),
        (click.Abort(), cli.FAILED, "Error: Nothing was done\n"),
    ],
)
def test_each_failure_has_its_line_and_exit_code(lore, failing, error, code, line):
    failing(error)
    assert lore("fail") == (code, "", line)


def test_errors_are_an_object_with_json(lore, failing):
    failing(NotFoundError("No such thing", hint="look around"))
    code, out, err = lore("fail", "--json")
    assert (code, err) == (cli.NOT_FOUND, "")
    assert json.loads(out) == {
        "error": {"code": "not_found", "message": "No such thing", "hint": "look around", "exit_code": 4}
    }


def test_terminal_escapes_in_an_error_are_not_printed(lore, failing):
    failing(LoreError("bad \x1b[2J path"))
    assert "\x1b" not in lore("fail")[2]


def test_a_defect_leaves_a_report_without_arguments(lore, failing, tmp_path):
    (tmp_path / "lore").mkdir()
    failing(RuntimeError("token = sk-proj-a8Fk29Lq0Zx7Vb3Nn5Tt1Pw"))
    code, _, err = lore("fail")
    report = (tmp_path / "lore" / "defect.md").read_text()
    assert code == cli.DEFECT
    assert f"paste {tmp_path}/lore/defect.md into a new issue" in err
    assert "command: lore fail" in report
    assert "test_cli.py" in report
    assert "a8Fk29Lq0Zx7Vb3Nn5Tt1Pw" not in report


def test_a_defect_in_a_home_that_cannot_be_written_prints_its_report(failing, capfd, monkeypatch):
    monkeypatch.setenv("LORE_HOME", "/dev/null/lore")
    failing(RuntimeError("broken"))
    assert cli.run(["fail"]) == cli.DEFECT
    assert "### A defect of lorehooks" in capfd.readouterr().err


def test_the_reader_of_the_output_may_go_away():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*LORE, "config", "--help"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (cli.READER_GONE, b"")


def test_ctrl_c_ends_a_command_with_130(tmp_path):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nkill -INT $PPID\nexec sleep 0.2\n")
    editor.chmod(0o755)
    environment = {**os.environ, "LORE_HOME": str(tmp_path / "lore"), "EDITOR": str(editor)}
    code, shown = _on_a_terminal(["node", "create", "core://x"], environment)
    assert code == cli.INTERRUPTED
    assert b"Traceback" not in shown


def test_ctrl_c_is_the_regular_end_of_serve(tmp_path):
    with subprocess.Popen(
        [*LORE, "serve", "--port", str(_free_port())],
        env={**os.environ, "LORE_HOME": str(tmp_path / "lore")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert "Lore server on http://127.0.0.1:" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "Traceback" not in err


def test_colour_is_for_terminals_and_no_color_switches_it_off(tmp_path):
    environment = {**os.environ, "LORE_HOME": str(tmp_path), "TERM": "xterm", "COLUMNS": "60"}
    _, coloured = _on_a_terminal(["nothing_like_it"], environment)
    assert b"\x1b[31m" in coloured
    assert b"\x1b" not in _on_a_terminal(["nothing_like_it"], {**environment, "NO_COLOR": "1"})[1]
    assert b"\x1b" not in _on_a_terminal(["nothing_like_it"], {**environment, "TERM": "dumb"})[1]


def test_a_table_is_as_wide_as_the_terminal_and_no_wider():
    program = """
from lorehooks.clients.output import Column, say_table
say_table([Column("uri", elastic=True), Column("says", elastic=True)], [("project://checkout_api/webhooks", "退款回调按事件编号幂等" * 5)])
"""
    environment = {**os.environ, "COLUMNS": "50", "TERM": "dumb"}
    _, shown = _on_a_terminal(["-c", program], environment, program=[sys.executable])
    lines = shown.decode().splitlines()
    assert 48 <= output.cells(lines[1]) <= 50  # a wide character does not fit into one cell
    assert lines[1].endswith("…")


def test_progress_shows_on_a_terminal_once_it_takes_long():
    program = """
from lorehooks.clients import output
output.PATIENCE_SECONDS = 0.05
import time
with output.Progress() as bar:
    for _ in range(10):
        time.sleep(0.02)
        bar.show("Replaying the log", _ + 1, 10)
with output.waiting("Comparing"):
    time.sleep(0.3)
"""
    _, shown = _on_a_terminal(["-c", program], {**os.environ, "TERM": "dumb"}, program=[sys.executable])
    assert b"Replaying the log" in shown
    assert b"100%" in shown
    assert b"Comparing" in shown


def _on_a_terminal(
    arguments: list[str], environment: dict[str, str], program: Sequence[str] = LORE
) -> tuple[int, bytes]:
    """A command's exit code, and what its terminal got."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*program, *arguments], stdin=terminal, stdout=terminal, stderr=terminal, env=environment, close_fds=True
    )
    os.close(terminal)
    read = b""
    try:
        while part := os.read(controller, 4096):
            read += part
    except OSError:  # Linux says so when the last program has left the terminal
        pass
    os.close(controller)
    return process.wait(30), read


def test_the_command_line_reference_says_what_the_commands_say():
    # in an interpreter of its own: click keeps the help option of whoever called a command first in this one
    script = "import sys; from lorehooks.installers import clidocs; sys.stdout.buffer.write(clidocs.render().encode())"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout.decode()
    assert DOCS.read_text(encoding="utf-8") == said, "run: python -m lorehooks.installers.clidocs"


def test_the_reference_holds_every_exit_code():
    text = DOCS.read_text(encoding="utf-8")
    for code in cli.EXIT_CODES:
        assert re.search(rf"^\| {code} \|", text, re.MULTILINE)


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
