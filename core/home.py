"""The one place that knows where things lie below the home folder (`~/.lore`; `LORE_HOME` moves it)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Home:
    """Paths below one home. Nothing here touches the disk."""

    root: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Home:
        """`LORE_HOME` when set and not blank, else `~/.lore`; absolute, since what is written from it is read elsewhere."""
        environment = os.environ if environment is None else environment
        moved = environment.get("LORE_HOME", "").strip()
        root = Path(moved).expanduser() if moved else Path(environment.get("HOME") or Path.home()) / ".lore"
        return cls(root.absolute())

    @property
    def config(self) -> Path:
        """Settings of this machine (TOML)."""
        return self.root / "config.toml"

    @property
    def database(self) -> Path:
        """The embedded memory: event log and projections."""
        return self.root / "lore.db"

    @property
    def records(self) -> Path:
        """Records of hook runs, for replay. Apart from the memory, since they are pruned and masked."""
        return self.root / "records.db"

    @property
    def bin(self) -> Path:
        """What runtimes start: `python` (link to the base interpreter), `hook.py`, `bridge.py`, `service`."""
        return self.root / "bin"

    @property
    def run(self) -> Path:
        """State of the running service; mode 0700; may be lost at any time."""
        return self.root / "run"

    @property
    def socket(self) -> Path:
        """Where the service listens for hooks."""
        return self.run / "service.sock"

    @property
    def service_file(self) -> Path:
        """`{port, token, pid, version}` of the running service (JSON, mode 0600)."""
        return self.run / "service.json"

    @property
    def lock(self) -> Path:
        """Held by the one running service."""
        return self.run / "service.lock"

    @property
    def boot(self) -> Path:
        """Ready boot bytes, one file per runtime, for a session start without the service."""
        return self.run / "boot"

    @property
    def tools(self) -> Path:
        """Ready answers of the MCP bridge and the plugin files: `<client_type>.json`."""
        return self.run / "tools"

    @property
    def misses(self) -> Path:
        """One line for each hook run that gave the session no memory: `epoch_ms client_type event reason`."""
        return self.run / "misses.log"

    @property
    def receipts(self) -> Path:
        """What each installation changed."""
        return self.root / "receipts"

    @property
    def backups(self) -> Path:
        """Copies of the memory."""
        return self.root / "backups"

    @property
    def plugins(self) -> Path:
        """Plugin folders that a host reads in place."""
        return self.root / "plugins"

    @property
    def log(self) -> Path:
        """What the service says of itself."""
        return self.run / "service.log"
