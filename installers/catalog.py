"""The runtimes that can be installed, in the order in which they are listed."""

from __future__ import annotations

from collections.abc import Mapping

from lorehooks.installers.claudecode import ClaudeCode
from lorehooks.installers.codex import Codex
from lorehooks.installers.dsh import Dsh
from lorehooks.installers.hermes import Hermes
from lorehooks.installers.openclaw import OpenClaw
from lorehooks.installers.opencode import OpenCode
from lorehooks.installers.pi import Pi
from lorehooks.installers.plan import RuntimeInstaller
from lorehooks.installers.zcode import ZCode

INSTALLERS: Mapping[str, RuntimeInstaller] = {
    installer.name: installer
    for installer in (ClaudeCode(), Codex(), OpenCode(), Pi(), OpenClaw(), Hermes(), Dsh(), ZCode())
}
