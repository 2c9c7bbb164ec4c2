"""Names of a session's folder and repository, from disks that may be slow, dead, or back again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from lorehooks.hooks import whereabouts
from lorehooks.hooks.whereabouts import Whereabouts


@pytest.fixture
def drive(monkeypatch):
    """Set it, and folders below `/dead` answer."""
    back = threading.Event()

    def repository_of(cwd):
        if cwd.startswith("/dead/"):
            back.wait()
        return cwd.rpartition("/")[2], "shop"

    monkeypatch.setattr(whereabouts, "repository_of", repository_of)
    yield back
    back.set()


def test_many_dead_folders_leave_the_others_their_names(drive):
    async def scenario():
        names = Whereabouts(seconds=0.05)
        await asyncio.gather(*(names.of(f"/dead/n{number}") for number in range(5)))
        names._seconds = 60  # a folder that answers does so, however busy this machine is
        assert await names.of("/work/web") == ("web", "shop")
        names._seconds = 0.05
        dead = await asyncio.gather(*(names.of(f"/dead/n{number}") for number in range(100)))
        assert dead[7] == ("n7", None)
        assert len([each for each in threading.enumerate() if each.name == "lore-whereabouts"]) < 50
        drive.set()
        await asyncio.gather(*names._asked.values())
        names._seconds = 60
        assert await names.of("/work/web") == ("web", "shop")

    asyncio.run(scenario())


def test_a_folder_that_did_not_answer_is_not_waited_for_again_until_it_does(drive):
    async def scenario():
        names = Whereabouts(seconds=0.05)
        assert await names.of("/dead/api") == ("api", None)
        names._seconds = 60
        began = time.monotonic()
        assert await names.of("/dead/api") == ("api", None)
        assert time.monotonic() - began < 30
        drive.set()
        await asyncio.gather(*names._asked.values())
        assert await names.of("/dead/api") == ("api", "shop")

    asyncio.run(scenario())


def test_a_process_ends_although_a_folder_never_answers():
    """A pool's threads are waited for at the end; a service would hang there for ever."""
    script = (
        "import asyncio, threading\n"
        "from lorehooks.hooks import whereabouts\n"
        "whereabouts.repository_of = lambda cwd: threading.Event().wait()\n"
        "print(asyncio.run(whereabouts.Whereabouts(0.05).of('/dead/api')))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "('api', None)\n"


def test_a_folder_is_asked_once_for_prompts_in_quick_succession_and_again_later(monkeypatch):
    asked = []
    monkeypatch.setattr(whereabouts, "repository_of", lambda cwd: asked.append(cwd) or ("web", f"shop{len(asked)}"))

    async def scenario():
        names = Whereabouts(seconds=60)
        assert [await names.of("/work/web") for _ in range(3)] == [("web", "shop1")] * 3
        monkeypatch.setattr(whereabouts, "_KNOWN_SECONDS", 0.0)
        assert await names.of("/work/web") == ("web", "shop2")
        monkeypatch.setattr(whereabouts, "_MOST_KNOWN", 4)
        for number in range(20):
            await names.of(f"/work/n{number}")
        assert len(names._known) <= 4

    asyncio.run(scenario())
