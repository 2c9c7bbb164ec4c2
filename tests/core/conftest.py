"""An empty memory in a folder of its own, and who writes to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lorehooks.core import uri as uris
from lorehooks.core.model import Node, NodeDraft, Origin
from lorehooks.core.store import Store
from lorehooks.core.writes import create


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
