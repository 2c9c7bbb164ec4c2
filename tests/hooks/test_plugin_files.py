"""The plugin files that hosts load: the shared transport in each of them, and its behaviour under node's own test runner."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lorehooks import hooks
from lorehooks.core.errors import InvalidError
from lorehooks.core.home import Home
from lorehooks.installers import pluginfiles

SOURCES = list(pluginfiles.plugin_sources())
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed on this machine")


def test_there_are_plugin_files() -> None:
    assert {path.name for path in SOURCES} >= {"opencode.js", "pi.js", "openclaw.js", "dsh.mjs"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_each_plugin_file_holds_the_transport_as_it_is(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source == pluginfiles.with_transport(source), "run python -m lorehooks.installers.pluginfiles"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_plugin_files_import_nothing_that_a_host_may_lack(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    names = re.findall(r"""(?:\bfrom|\bimport|\brequire\()\s*["']([^"']+)["']""", source)
    assert names
    assert all(name.startswith("node:") for name in names)
    assert "import(" not in source


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_an_installed_file_names_its_home_once_whatever_the_path_holds(path: Path, tmp_path: Path) -> None:
    home = Home(tmp_path / 'zoë "김" \\ $& ${x}')
    text = pluginfiles.plugin_file(str(path.relative_to(pluginfiles.FOLDER)), home).decode()
    assert "@LORE_HOME@" not in text
    if NODE is not None:
        line = next(line for line in text.splitlines() if line.startswith("const LORE_HOME ="))
        ran = subprocess.run(
            [NODE, "-e", f"{line}\nprocess.stdout.write(LORE_HOME)"], capture_output=True, check=True, text=True
        )
        assert ran.stdout == str(home.root)


def test_a_home_that_no_javascript_can_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError):
        pluginfiles.plugin_file("opencode.js", Home(tmp_path / "\udcff"))


def test_the_service_gets_the_same_environment_from_plugins_as_from_hooks() -> None:
    def words(pattern: str, path: Path) -> set[str]:
        found = re.search(pattern, path.read_text(encoding="utf-8"))
        assert found is not None
        return set(re.findall(r"[A-Z_]{2,}", found[1]))

    from_hooks = words(r'ALLOWED = b"([^"]+)"', Path(hooks.__file__).parent / "hook.py")
    assert words(r"const ALLOWED = \[([^\]]+)\]", pluginfiles.FOLDER / "transport.mjs") == from_hooks


@needs_node
@pytest.mark.parametrize("name", ["transport", "plugins", "dsh", "openclaw"])
def test_under_node(name: str) -> None:
    """Runs `js/NAME.test.mjs`; its report is the failure's text."""
    assert NODE is not None
    file = Path(__file__).parent / "js" / f"{name}.test.mjs"
    ran = subprocess.run([NODE, "--test", str(file)], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stdout[-8000:]
