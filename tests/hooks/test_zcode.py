"""ZCode's stand-in with the real hook program, bridge and service: what a session gets, and every fault a user can meet."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lorehooks.core.model import NodeDraft, NodePatch, Origin
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.core.writes import create, set_settings, update
from lorehooks.hooks import layout, service
from lorehooks.installers import engine, receipt
from lorehooks.installers.plan import Context
from lorehooks.installers.zcode import TOOL, ZCode

CLI = Origin("cli")
NODE = NodeDraft(
    "project://deploy_checklist",
    "Production deploys go through the blue cluster first.",
    2,
    "When a production deploy is planned",
    ("production deploy", "deploy"),
)
RULE = "Always answer in whole sentences."
QUESTION = "How do we run a production deploy?"
CONTENT_OF_OTHERS = "demo fact"
"""What `bad_server.py` answers where it answers anything."""
UNRELATED = "What colour has the sky at noon?"


@pytest.fixture(scope="module")
def simulator() -> ModuleType:
    """`tests/support/zcode_sim.py`, which is no package's."""
    spec = importlib.util.spec_from_file_location("zcode_sim", Path(__file__).parents[1] / "support" / "zcode_sim.py")
    assert spec
    assert spec.loader
    module = sys.modules["zcode_sim"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def session(place, simulator, tmp_path):
    """`session(**options)`: a session of ZCode with our memory, one rule and one memory in it."""
    user, project = place.home.root.parent, tmp_path / "project"
    project.mkdir()
    layout.lay(place.home)
    write(place)
    context = Context(place.home, user, {"HOME": str(user), "PATH": "/usr/bin:/bin"})
    with receipt.exclusive(place.home):
        engine.install(ZCode(), context)
    place.limits(8000, 8000)

    def begin(**options):
        return simulator.ZCode(user, project, {"PATH": "/usr/bin:/bin"}, **options)

    return begin


def write(place) -> None:
    store = Store(place.home.database)
    set_settings(store, {"embedding.provider": "off"}, CLI)
    update(store, parse("core://agent"), NodePatch(content=RULE), CLI)
    create(store, NODE, CLI)
    store.close()


def ids(text: str) -> tuple[str, ...]:
    found = re.search(r'<recall session_id="([^"]+)" query_id="([^"]+)"', text)
    return found.groups() if found else ()


@pytest.mark.parametrize("spelling", ["both", "camel", "snake"])
def test_boot_recall_and_ids_arrive_whatever_spelling_the_fields_have(session, spelling):
    zcode = session(spelling=spelling)
    start = zcode.start()
    assert RULE in start.context
    prompt = zcode.prompt(QUESTION)
    assert NODE.uri in prompt.context
    given, query = ids(prompt.context)
    assert given == zcode.session_id
    opened = zcode.open(TOOL, {"uri": NODE.uri})
    assert opened.tool_input == {"uri": NODE.uri, "session_id": given, "query_id": query}
    assert NODE.content in opened.context
    passed = zcode.open(TOOL, {"uri": NODE.uri, "session_id": given, "query_id": query})
    assert passed.tool_input is None
    assert NODE.content in passed.context
    assert [*start.failures, *prompt.failures, *opened.failures, *passed.failures] == []


def test_a_session_that_does_not_tell_its_id_gets_boot_and_recall_without_ids(session):
    zcode = session(names_session=False)
    assert RULE in zcode.start().context
    prompt = zcode.prompt(QUESTION)
    assert NODE.uri in prompt.context
    assert "session_id" not in prompt.context
    opened = zcode.open(TOOL, {"uri": NODE.uri})
    assert NODE.content in opened.context
    assert opened.failures == []


def test_each_source_gets_what_it_lacks(session):
    zcode = session()
    got = [
        bool(zcode.start(source).context) for source in ("startup", "resume", "compact", "clear", "of-a-later-release")
    ]
    assert got == [True, False, True, True, True]


def test_prompts_that_ask_nothing_get_nothing(session):
    zcode = session()
    for text in (UNRELATED, "/clear", "  ", "<task-notification> done"):
        outcome = zcode.prompt(text)
        assert (outcome.context, outcome.failures) == ("", [])


@pytest.mark.parametrize("letters", ["记忆里的规则。", '"\\', "🟡 rule & <b>"])
def test_a_block_of_any_size_is_neither_dropped_nor_cut(session, place, simulator, letters):
    store = Store(place.home.database)
    for uri in ("core://agent", "core://soul", "preferences://user", "core://agent/zcode"):
        update(store, parse(uri), NodePatch(content=letters * (40_000 // len(letters))), CLI)
    store.close()
    outcome = session_of(place, simulator, session).start()
    assert outcome.failures == []
    assert len(outcome.context.encode()) > 12_000
    assert len(outcome.context) < simulator.MOST_CHARACTERS


def session_of(place, simulator, session):
    """A session over a memory that was changed while no service ran."""
    service.stop(place.home)
    return session()


def test_hooks_switched_off_or_dropped_by_the_app_leave_a_session_without_memory_and_are_put_back(session, place):
    zcode = session()
    before = zcode.config
    zcode.save_settings(hooks={"enabled": False})
    assert session().start().context == ""
    context = Context(place.home, zcode.file.parents[2], {"HOME": str(zcode.file.parents[2]), "PATH": ""})
    codes = {finding.code for finding in ZCode().check(context)}
    assert codes == {"not_registered", "hooks_off"}
    with receipt.exclusive(place.home):
        engine.install(ZCode(), context)
    assert RULE in session().start().context
    assert session().config["hooks"]["events"] == before["hooks"]["events"]


# --- faults


def test_a_halted_service_costs_no_more_than_the_limit_and_fails_nothing(session, place, wait_for):
    zcode = session()
    assert RULE in zcode.start().context
    wait_for((place.home.boot / "zcode").exists, "ready boot bytes")
    wait_for(lambda: (place.home.run / "limits").read_text() != "8000 8000\n", "the service's own limits")
    place.limits(600, 600)
    pid = place.pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        start, prompt = zcode.start("clear"), zcode.prompt(QUESTION)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert RULE in start.context  # the bytes that lie ready
    assert prompt.context == ""
    assert [*start.failures, *prompt.failures] == []
    assert start.seconds + prompt.seconds < 8  # of two times 0.6 s, and four starts of programs on a busy machine
    assert "timeout" in place.misses()


def test_a_killed_service_is_started_again_by_the_next_prompt(session, place):
    zcode = session()
    zcode.start()
    os.kill(place.pid(), signal.SIGKILL)
    assert NODE.uri in zcode.prompt(QUESTION).context


@pytest.mark.parametrize(
    "mode", ["hang", "drip_headers", "html200", "err500json", "wrongtype", "rst", "redirect_other", "big"]
)
def test_a_memory_on_a_server_that_misbehaves_fails_no_prompt(session, place, tmp_path, mode):
    script, heads = Path(__file__).parents[1] / "support" / "bad_server.py", tmp_path / "heads"
    with heads.open("w") as log:
        bad = place.popen([sys.executable, str(script), mode], stdout=subprocess.PIPE, stderr=log)
    port = int(bad.stdout.readline().split()[-1])
    place.home.config.write_text(f'[server]\nurl = "http://127.0.0.1:{port}"\n[hooks]\nprompt_timeout_ms = 900\n')
    place.limits(1500, 5000)
    zcode = session()
    outcomes = [zcode.start(), zcode.prompt(QUESTION)]
    assert [(outcome.failures, outcome.blocked) for outcome in outcomes] == [([], False)] * 2
    assert CONTENT_OF_OTHERS not in "".join(outcome.context for outcome in outcomes)
    assert "/api/browse/" in heads.read_text()
    assert place.misses()
    # 6.5 s at most, and programs that start on a busy machine:
    assert sum(outcome.seconds for outcome in outcomes) < 12


@pytest.mark.parametrize("damage", ["package gone", "interpreter gone", "hook gone", "home gone", "home read-only"])
def test_what_happens_to_our_files_fails_no_prompt(session, place, damage):
    zcode = session()
    service.stop(place.home)
    home = place.home
    match damage:
        case "package gone":
            place.start_by("exec /opt/gone/python -m lorehooks.hooks.service")
        case "interpreter gone":
            (home.bin / "python").unlink()
            (home.bin / "python").symlink_to("/opt/gone/python")
        case "hook gone":
            (home.bin / "hook.py").unlink()
        case "home gone":
            shutil.rmtree(home.root)
        case "home read-only":
            for path in (home.root, *home.root.rglob("*")):
                with contextlib.suppress(OSError):
                    path.chmod(path.stat().st_mode & ~0o222)
    outcomes = [zcode.start(), zcode.prompt(QUESTION)]
    assert not any(outcome.blocked for outcome in outcomes)
    assert [outcome.failures for outcome in outcomes] == [[], []]
    if damage == "home read-only":
        home.root.chmod(0o700)
