"""Commands that a person pastes: one shell word for each thing that was meant as one."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from lorehooks.core.home import Home
from lorehooks.installers.registered import for_home, home_of, is_ours, registered_command

NAMES = ["/home/me/.lore", "/Users/o'brien/my lore", "/tmp/$(id)`id`;id", '/家/"记忆"\\n']


@pytest.mark.parametrize("root", NAMES)
def test_a_command_for_another_home_is_one_setting_and_one_command(root):
    assert shlex.split(for_home(Path(root), "lore uninstall codex")) == [
        f"LORE_HOME={root}",
        *["lore", "uninstall", "codex"],
    ]


@pytest.mark.parametrize("root", NAMES)
def test_a_registered_command_names_its_home_whatever_signs_are_in_it(root):
    command = registered_command(Home(Path(root)), "codex", "prompt.submit")
    assert home_of(command, "codex", "prompt.submit") == Home(Path(root))
    assert is_ours(command, Home(Path(root)))
    assert not is_ours(command, Home(Path(root) / "other"))
