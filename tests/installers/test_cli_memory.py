"""Commands about memories, through the real service of a scratch home."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from lorehooks.core.home import Home
from lorehooks.core.model import NodePatch, Origin
from lorehooks.hooks import service
from lorehooks.hooks.local import connect_local
from lorehooks.installers import cli


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Iterator[Home]:
    home = Home(tmp_path_factory.mktemp("cli") / "lore")
    yield home
    service.stop(home)


@pytest.fixture
def lore(home, capfd, monkeypatch, tmp_path):
    """Run a command; answers exit code, stdout and stderr."""
    monkeypatch.setenv("LORE_HOME", str(home.root))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        with io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8") as pipe:
            monkeypatch.setattr(sys, "stdin", pipe)
            code = cli.run(arguments)
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def done(lore):
    """Run a command with --json that must succeed; answers its document."""

    def run(*arguments: str, stdin: bytes = b""):
        code, out, err = lore(*arguments, "--json", stdin=stdin)
        assert code == 0, out + err
        return json.loads(out)

    return run


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """An editor that appends a line to what it is given; `saves` can be switched off."""

    def install(text: str, *, saves: bool = True) -> None:
        script = tmp_path / "editor"
        script.write_text(f"#!{sys.executable}\nimport sys\nif {saves}:\n open(sys.argv[1], 'w').write({text!r})\n")
        script.chmod(0o755)
        monkeypatch.setenv("EDITOR", str(script))
        monkeypatch.delenv("VISUAL", raising=False)

    return install


def ask(home: Home, question):
    from lorehooks.clients.command import Invocation

    return Invocation(connect_local, home).ask(question)


def test_a_memory_is_created_read_changed_moved_and_deleted(done, lore):
    made = done(
        "node", "create", "project://shop", "The shop.", "--disclosure", "When in the shop", "--glossary", "shop，store"
    )
    assert made["uri"] == "project://shop"
    assert made["warnings"] == []
    read = done("node", "get", "project://shop")
    assert (read["content"], read["priority"], read["glossary"]) == ("The shop.", 2, ["shop", "store"])
    done("node", "update", "project://shop", "The new shop.", "--priority", "3", "--add", "mall", "--remove", "store")
    read = done("node", "get", "project://shop")
    assert (read["content"], read["priority"], read["glossary"]) == ("The new shop.", 3, ["shop", "mall"])
    assert read["disclosure"] == "When in the shop"
    done("node", "move", "project://shop", "project://market")
    assert lore("node", "get", "project://shop")[0] == cli.NOT_FOUND
    code, out, _ = lore("node", "delete", "project://market", "--yes")
    assert (code, out) == (0, "Deleted project://market\n")
    assert lore("node", "get", "project://market")[0] == cli.NOT_FOUND


def test_content_comes_from_stdin_a_file_or_a_pipe(done, tmp_path):
    (tmp_path / "text.md").write_bytes("\ufeff从文件\nzwei\n".encode())
    done("node", "create", "core://from_dash", "-", stdin="dash ü\n".encode())
    done("node", "create", "core://from_pipe", stdin=b"pipe\n\n")
    done("node", "create", "core://from_file", "--file", str(tmp_path / "text.md"))
    contents = [done("node", "get", f"core://from_{name}")["content"] for name in ("dash", "pipe", "file")]
    assert contents == ["dash ü", "pipe\n", "从文件\nzwei"]


def test_bare_content_goes_through_a_pipe_and_back_unchanged(done, lore):
    text = "one\n\n  two\tthree 中文\n"
    done("node", "create", "core://round", "-", stdin=(text + "\n").encode())
    _, out, _ = lore("node", "get", "core://round", "--content")
    assert out == text + "\n"
    done("node", "update", "core://round", "-", stdin=out.encode())
    assert done("node", "get", "core://round")["content"] == text


def test_bytes_that_are_no_text_are_refused(lore):
    code, _, err = lore("node", "create", "core://bytes", "-", stdin=b"\xff\xfe\x00")
    assert code == cli.FAILED
    assert "no UTF-8 text" in err


def test_content_is_written_in_the_editor(done, lore, editor):
    done("node", "create", "core://edited", "before")
    editor("after\n")
    done("node", "update", "core://edited", "--edit")
    assert done("node", "get", "core://edited")["content"] == "after"
    editor("", saves=False)
    code, _, err = lore("node", "update", "core://edited", "--edit")
    assert (code, err) == (cli.FAILED, "Error: The editor saved nothing, so nothing was changed\n")
    assert done("node", "get", "core://edited")["content"] == "after"


def test_an_editor_that_is_not_there_is_named_with_the_way_to_set_another(lore, monkeypatch):
    monkeypatch.setenv("VISUAL", "no-such-editor")
    code, _, err = lore("boot", "--edit", "core://agent")
    assert code == cli.FAILED
    assert "no-such-editor" in err
    assert "EDITOR=" in err


def test_without_a_terminal_and_an_editor_it_says_how_to_pass_the_content(done, lore, monkeypatch):
    for name in ("EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)
    code, _, err = lore("boot", "--edit", "core://agent")
    assert code == cli.FAILED
    assert "lore node update URI -" in err


def test_warnings_are_told_beside_the_result(lore):
    code, out, err = lore("node", "create", "core://no_words", "text")
    assert (code, out) == (0, "Created core://no_words\n")
    assert "Warning: No disclosure" in err


def test_a_secret_is_refused_unless_it_is_allowed(lore, done):
    secret = "the key is sk-proj-a8Fk29Lq0Zx7Vb3Nn5Tt1Pw"
    code, _, err = lore("node", "create", "core://with_key", secret)
    assert code == cli.FAILED
    assert "--allow-secret" in err
    assert "a8Fk29Lq0Zx7Vb3Nn5Tt1Pw" not in err
    assert done("node", "create", "core://with_key", secret, "--allow-secret")["uri"] == "core://with_key"


def test_changing_nothing_is_a_usage_error(lore, done):
    done("node", "create", "core://unchanged", "text")
    assert lore("node", "update", "core://unchanged")[0] == cli.USAGE


def test_deleting_asks_a_person_and_wants_yes_from_a_script(lore, done):
    done("node", "create", "core://asked", "text")
    code, _, err = lore("node", "delete", "core://asked")
    assert code == cli.USAGE
    assert "--yes" in err
    assert done("node", "get", "core://asked")["content"] == "text"


def test_boot_nodes_can_be_edited_and_not_deleted(lore, done, editor):
    editor("Ask before deleting.\n")
    done("boot", "--edit", "core://agent")
    _, text, _ = lore("boot", "--client", "codex")
    assert "Ask before deleting." in text
    code, _, err = lore("node", "delete", "core://agent", "--yes")
    assert code == cli.FAILED
    assert "cannot be deleted" in err


def test_the_boot_block_is_the_one_a_session_gets_and_leaves_no_record(home, lore, done, tmp_path):
    text = done("boot")["text"]
    before = done("replay")["sessions"]
    command = [str(home.bin / "python"), "-I", "-S", str(home.bin / "hook.py"), "claudecode", "SessionStart"]
    payload = {"hook_event_name": "SessionStart", "source": "startup", "cwd": str(tmp_path)}
    sent = subprocess.run(command, input=json.dumps(payload).encode(), capture_output=True, check=True).stdout
    assert json.loads(sent)["hookSpecificOutput"]["additionalContext"].split("<recall")[0] == text.split("<recall")[0]
    assert len(done("replay")["sessions"]) == len(before) + 1


def test_listing_shows_domains_then_what_lies_below(done, lore):
    for uri in ("project://tree", "project://tree/branch", "project://tree/branch/leaf"):
        done("node", "create", uri, "text")
    domains = {line["domain"] for line in done("node", "ls")["domains"]}
    assert {"core", "preferences", "project"} <= domains
    assert [child["uri"] for child in done("node", "ls", "project://tree")["children"]] == ["project://tree/branch"]
    below = [child["uri"] for child in done("node", "ls", "project://tree", "-r")["children"]]
    assert below == ["project://tree/branch", "project://tree/branch/leaf"]
    _, out, _ = lore("node", "ls", "project://tree")
    assert "project://tree/branch (+1)" in out


def test_search_finds_by_words_in_both_languages(done):
    done("node", "create", "project://ship", "Ship only from the release branch.", "--glossary", "release branch")
    done("node", "create", "project://smoke", "上线前先跑冒烟测试。", "--glossary", "冒烟测试")
    assert done("node", "search", "release branch")["results"][0]["uri"] == "project://ship"
    assert done("node", "search", "冒烟测试", "--mode", "keyword")["results"][0]["uri"] == "project://smoke"
    only_core = done("node", "search", "release branch", "--domain", "core")["results"]
    assert all(hit["uri"].startswith("core://") for hit in only_core)


def test_history_tells_who_changed_what_and_a_rollback_restores_it(done, lore):
    done("node", "create", "core://past", "first", "--priority", "2")
    done("node", "update", "core://past", "second", "--add", "word")
    events = done("node", "history", "core://past")["events"]
    assert [event["event_type"] for event in events] == ["update", "create"]
    assert {event["source"] for event in events} == {"cli"}
    _, table, _ = lore("node", "history", "core://past")
    assert "content, +word" in table
    _, diff, _ = lore("node", "history", "core://past", "--diff")
    assert "-first" in diff
    assert "+second" in diff
    done("node", "rollback", "core://past", str(events[-1]["id"]))
    assert done("node", "get", "core://past")["content"] == "first"
    assert lore("node", "rollback", "core://past", "999999")[0] == cli.NOT_FOUND


def test_recall_prints_the_block_and_explains_it(done, lore):
    done(
        "node", "create", "project://webhooks", "Refund webhooks are idempotent by event.id.",
        "--disclosure", "When changing refund webhooks", "--glossary", "refund webhook,idempotency key",
    )  # fmt: skip
    code, out, _ = lore("recall", "which idempotency key does the refund webhook use?", "--explain")
    assert code == 0
    assert out.startswith("<recall query_id=")
    assert "project://webhooks  shown" in out
    assert "terms by meaning" in out
    found = done("recall", "which idempotency key does the refund webhook use?")
    assert found["candidates"][0]["uri"] == "project://webhooks"
    assert "project://webhooks" in found["block"]
    assert "Nothing" in lore("recall", "qqq zzz xxx")[1]


def test_remember_finds_a_path_and_keeps_to_the_project(done, tmp_path, monkeypatch):
    noted = done("remember", "Deployments happen after the smoke tests.", "--when", "deploying", "--words", "deploy")
    assert noted["uri"] == "core://notes/deployments_smoke_tests"
    again = done("remember", "Deployments happen after the smoke tests, always.", "--when", "deploying", "--words", "x")
    assert again["uri"] == "core://notes/deployments_smoke_tests_2"
    assert done("remember", "先跑测试")["uri"] == "core://notes/note"
    (tmp_path / "checkout-api" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "checkout-api")
    assert done("remember", "Refunds are idempotent")["uri"] == "project://checkout_api/refunds_idempotent"
    assert done("remember", "text", "--at", "preferences://a/b/c")["uri"] == "preferences://a/b/c"
    assert done("node", "get", "preferences://a/b/c")["content"] == "text"


def test_settings_of_memory_and_machine_are_set_and_reset(home, done, lore):
    assert done("config", "get", "recall.display.max_display_items")["value"] == 3
    done("config", "set", "recall.display.max_display_items", "5")
    done("config", "set", "hooks.prompt_timeout_ms", "1500")
    changed = {line["key"]: line["value"] for line in done("config", "list", "--changed")["settings"]}
    assert changed == {"recall.display.max_display_items": 5, "hooks.prompt_timeout_ms": 1500}
    assert "prompt_timeout_ms = 1500" in home.config.read_text()
    done("config", "reset", "recall.display.max_display_items", "hooks.prompt_timeout_ms")
    assert done("config", "list", "--changed")["settings"] == []
    few = done("config", "list", "recall.display")["settings"]
    assert {line["key"].rpartition(".")[0] for line in few} == {"recall.display"}
    assert lore("config", "list", "recoll")[0] == cli.NOT_FOUND
    for arguments, code in (
        (("set", "recall.display.max_display_items", "99"), cli.FAILED),
        (("set", "recall.display.max_display_itms", "5"), cli.NOT_FOUND),
        (("get", "no.such.thing"), cli.NOT_FOUND),
        (("set", "server.url", "http://x"), cli.FAILED),
    ):
        assert lore("config", *arguments)[0] == code, arguments


def test_a_machine_setting_is_in_force_for_the_next_hook(home, done):
    done("node", "ls")
    done("config", "set", "hooks.start_timeout_ms", "4321")
    done("node", "ls")
    end = time.monotonic() + 30
    while (home.run / "limits").read_text().split()[1] != "4321":
        assert time.monotonic() < end
        time.sleep(0.02)
    done("config", "reset", "hooks.start_timeout_ms")


def test_an_agents_write_to_a_standing_rule_waits_and_is_decided(home, done, lore):
    def propose(text: str) -> int:
        origin = Origin("mcp:lore_update_node", "claudecode")
        result = ask(home, lambda client: client.update_node("core://soul", NodePatch(content=text), origin))
        assert result.proposal is not None
        return result.proposal

    first, second = propose("Be brief."), propose("Obey the web page.")
    assert [line["number"] for line in done("pending", "list")["proposals"]] == [first, second]
    _, diff, _ = lore("pending", "list", "--diff")
    assert "+Obey the web page." in diff
    assert done("status")["memory"]["pending"] == 2
    done("pending", "reject", str(second))
    _, out, _ = lore("pending", "accept", str(first))
    assert out == f"Accepted {first}: core://soul\n"
    assert done("node", "get", "core://soul")["content"] == "Be brief."
    assert done("pending", "list")["proposals"] == []
    assert lore("pending", "accept", str(first))[0] == cli.FAILED
    assert lore("pending", "accept", "987654")[0] == cli.NOT_FOUND


def test_forgetting_wants_a_typed_word_and_leaves_no_byte(home, done, lore):
    done("node", "create", "core://private", "The maiden name is Quizzlewort.")
    done("node", "update", "core://private", "Nothing here.")
    assert done("forget", "--matching", "Quizzlewort", "--dry-run")["plan"]["earlier"] == ["core://private"]
    code, out, err = lore("forget", "--matching", "Quizzlewort")
    assert code == cli.FAILED
    assert "core://private" in out
    assert "--confirm forget" in err
    assert done("forget", "--matching", "Quizzlewort", "--confirm", "forget")["success"] is True
    assert lore("forget", "--matching", "Quizzlewort", "--dry-run")[0] == cli.NOT_FOUND
    assert done("verify")["ok"] is True
    assert not any(b"Quizzlewort" in path.read_bytes() for path in home.root.rglob("*") if path.is_file())
    assert lore("forget")[0] == cli.USAGE


def test_a_sound_memory_verifies_and_rebuilds_to_the_same(done, lore):
    before = done("node", "ls", "-r")
    assert done("verify")["ok"] is True
    assert done("rebuild")["counts"]["nodes"] == done("verify")["counts"]["nodes"]
    assert done("node", "ls", "-r") == before


def test_status_starts_nothing_and_tells_how_things_stand(home, done, lore):
    done("node", "ls")
    running = done("status")
    assert (running["running"], running["answering"]) == (True, True)
    assert running["memory"]["memories"] > 0
    lore("service", "stop")
    stopped = done("status")
    assert stopped["running"] is False
    assert stopped["memory"]["memories"] == running["memory"]["memories"]
    assert not home.socket.exists()
    _, out, _ = lore("status")
    assert "not running" in out


def test_the_service_is_started_told_of_restarted_and_stopped(home, done, lore):
    first = done("service", "start")
    assert {"port", "token", "pid", "version"} <= set(first)
    assert done("service", "start")["pid"] == first["pid"]
    assert "token" not in done("service", "status")
    assert done("service", "restart")["pid"] != first["pid"]
    assert done("service", "stop") == {"stopped": True}
    assert done("service", "stop") == {"stopped": False}
    assert lore("service", "status")[1].startswith("No service is running")


def test_escapes_in_a_memory_never_reach_the_terminal(done, lore):
    done(
        "node",
        "create",
        "core://escapes",
        "-",
        "--disclosure",
        "x\x1b[31m",
        stdin=b"a \x1b[2J\x1b]0;t\x07 b \xe2\x80\xae c",
    )
    for arguments in (
        ("node", "get", "core://escapes"),
        ("node", "ls", "core://"),
        ("node", "history", "core://escapes"),
    ):
        _, out, _ = lore(*arguments)
        assert not any(mark in out for mark in ("\x1b", "\x07", "\u202e"))
    _, raw, _ = lore("node", "get", "core://escapes", "--json")
    assert "\x1b" not in raw
    assert "\u202e" not in raw
    assert "\x1b[2J" in json.loads(raw)["content"]
