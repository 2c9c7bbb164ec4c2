"""An empty memory in a folder of its own, and who writes to it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from lorehooks.core import uri as uris
from lorehooks.core.model import Node, NodeDraft, Origin
from lorehooks.core.store import Store
from lorehooks.core.writes import create

_NOBODY = 65534


@pytest.fixture
def database_path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "lore.db"


@pytest.fixture
def store(database_path: Path) -> Iterator[Store]:
    opened = Store(database_path)
    yield opened
    opened.close()


@pytest.fixture
def person() -> Origin:
    return Origin("cli")


@pytest.fixture
def agent() -> Origin:
    return Origin("mcp:lore_update_node", "claudecode", "s-1")


@pytest.fixture
def add(store: Store, person: Origin) -> Callable[..., Node]:
    """Create a memory and answer it: `add("project://shop", "content", priority=1)`."""

    def make(uri: str, content: str = "content", **fields: object) -> Node:
        create(store, NodeDraft(uri, content, **{"disclosure": "When testing", **fields}), person)
        return store.require(uris.parse(uri))

    return make


@pytest.fixture
def without_rights() -> Callable[[], AbstractContextManager[None]]:
    """Root may write everything, so it becomes somebody else inside of a block."""

    @contextlib.contextmanager
    def dropped() -> Iterator[None]:
        if os.geteuid() != 0:
            yield
            return
        os.seteuid(_NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)

    return dropped


@pytest.fixture
def readable_folder() -> Iterator[Path]:
    """A folder that others may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        Path(name).chmod(0o755)
