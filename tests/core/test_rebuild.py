from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lorehooks.core import uri as uris
from lorehooks.core.errors import LoreError, StorageError
from lorehooks.core.forget import forget
from lorehooks.core.history import history, rollback
from lorehooks.core.model import BOOT_URIS, Node, NodeDraft, NodePatch, Origin
from lorehooks.core.policy import PRIORITY_CAPS
from lorehooks.core.proposals import accept, pending, reject
from lorehooks.core.rebuild import rebuild, verify
from lorehooks.core.schema import PROJECTIONS
from lorehooks.core.store import Store
from lorehooks.core.writes import create, delete, mark_used, move, set_settings, update

Add = Callable[..., Node]
Rows = dict[str, list[tuple[object, ...]]]


def projections(store: Store) -> Rows:
    return {
        table: sorted((tuple(row) for row in store.database.query(f"SELECT * FROM {table}")), key=repr)
        for table in PROJECTIONS
    }


names = st.sampled_from(["a", "b", "a_b", "axb", "a1"])
known = st.lists(names, min_size=1, max_size=3).map(lambda parts: uris.Uri("w", "/".join(parts)))
anywhere = known | st.sampled_from([uris.parse(text) for text in BOOT_URIS[:4]])
texts = st.sampled_from(["", "one", "two words", "部署方案", "half \ud83d", "key-7731"])
keywords = st.lists(st.sampled_from(["cart", "Cart", "退款", "key-7731"]), max_size=2).map(tuple)
origins = st.sampled_from([Origin("cli"), Origin("mcp:lore_update_node", "claudecode", "s-1"), Origin("import")])


def refused(verb: Callable[[], object]) -> LoreError | None:
    try:
        verb()
    except LoreError as refusal:
        return refusal
    return None


class AnyWrites(RuleBasedStateMachine):
    """Every verb in any order, beside the simplest model that could be right: a dictionary of address to content."""

    def __init__(self) -> None:
        super().__init__()
        memory_disk = "/dev/shm" if Path("/dev/shm").is_dir() else None  # thousands of writes need no real disk
        self.folder = tempfile.TemporaryDirectory(dir=memory_disk)
        self.store = Store(Path(self.folder.name) / "lore.db")
        self.model: dict[str, str] = {}

    def teardown(self) -> None:
        before = projections(self.store)
        assert verify(self.store).problems == ()
        for table in PROJECTIONS:
            with self.store.database.write() as connection:
                connection.execute(f"DROP TABLE {table}")
        rebuild(self.store)
        assert projections(self.store) == before
        assert verify(self.store).problems == ()
        self.store.close()
        self.folder.cleanup()

    @rule(uri=known, content=texts, priority=st.integers(0, 3), glossary=keywords, origin=origins)
    def create(self, uri: uris.Uri, content: str, priority: int, glossary: tuple[str, ...], origin: Origin) -> None:
        parent_missing = uri.parent is not None and str(uri.parent) not in self.model
        draft = NodeDraft(str(uri), content, priority, content, glossary)
        refusal = refused(lambda: create(self.store, draft, origin))
        if refusal is not None:
            assert str(uri) in self.model or parent_missing or "limit" in refusal.message
            return
        assert not parent_missing
        assert str(uri) not in self.model
        self.model[str(uri)] = content.replace("\ud83d", "\ufffd")

    @rule(uri=anywhere, content=st.none() | texts, priority=st.none() | st.integers(0, 3), glossary=st.none() | keywords,
          more=keywords, less=keywords, origin=origins)  # fmt: skip
    def update(
        self, uri: uris.Uri, content: str | None, priority: int | None, glossary: tuple[str, ...] | None,
        more: tuple[str, ...], less: tuple[str, ...], origin: Origin,
    ) -> None:  # fmt: skip
        patch = NodePatch(content, priority, None, glossary, more, less)
        refusal = refused(lambda: update(self.store, uri, patch, origin))
        if refusal is not None:
            assert str(uri) not in self.model or "limit" in refusal.message
        elif content is not None and str(uri) in self.model:
            self.model[str(uri)] = content.replace("\ud83d", "\ufffd")

    @rule(uri=known, origin=origins)
    def delete(self, uri: uris.Uri, origin: Origin) -> None:
        refusal = refused(lambda: delete(self.store, uri, origin))
        assert (refusal is None) == (str(uri) in self.model)
        self.model = {text: content for text, content in self.model.items() if not uri.contains(uris.parse(text))}

    @rule(old=known, new=known, origin=origins)
    def move(self, old: uris.Uri, new: uris.Uri, origin: Origin) -> None:
        fits = (
            str(old) in self.model and str(new) not in self.model and not old.contains(new)
            and (new.parent is None or str(new.parent) in self.model)
        )  # fmt: skip
        refusal = refused(lambda: move(self.store, old, str(new), origin))
        assert (refusal is None) == fits
        if refusal is not None:
            return
        self.model = {
            str(new) + text.removeprefix(str(old)) if old.contains(uris.parse(text)) else text: content
            for text, content in self.model.items()
        }

    @rule(uri=known, step=st.integers(0, 4), origin=origins)
    def roll_back(self, uri: uris.Uri, step: int, origin: Origin) -> None:
        assume(str(uri) in self.model)
        events = history(self.store, uri)
        event = events[min(step, len(events) - 1)]
        refusal = refused(lambda: rollback(self.store, uri, event.seq, origin))
        if refusal is not None:
            assert event.type not in {"create", "update"} or "limit" in refusal.message
            return
        self.model[str(uri)] = event.data["after"]["content"]

    @rule(uri=anywhere, query_id=st.sampled_from(["q-1", "q-2"]))
    def use(self, uri: uris.Uri, query_id: str) -> None:
        node = self.store.node(uri)
        assume(node is not None)
        assert mark_used(self.store, query_id, [node, node], "passed", Origin("use", "codex")) <= 1

    @rule(uri=known, text=st.none() | texts, origin=origins)
    def refine(self, uri: uris.Uri, text: str | None, origin: Origin) -> None:
        node = self.store.node(uri)
        assume(node is not None)
        data: dict[str, object] = {"type": "gist", "text": text, "model": "m", "signature": "s"}
        with self.store.transaction(origin) as transaction:
            transaction.append("view", data, node_uuid=node.uuid, uri=node.uri)

    @rule(weight=st.none() | st.floats(0, 1), review=st.sampled_from(["review", "allow", None]))
    def set(self, weight: float | None, review: str | None) -> None:
        values = {"recall.weights.w_exact": weight, "policy.boot_write": review, "embedding.model": None}
        set_settings(self.store, values, Origin("cli"))

    @rule(yes=st.booleans())
    def decide(self, yes: bool) -> None:
        waiting = pending(self.store)
        assume(waiting)
        (accept if yes else reject)(self.store, waiting[0].number, Origin("console"))

    @rule()
    def forget_a_text(self) -> None:
        """A memory that holds it now goes; one with others below it stays empty."""
        forget(self.store, Origin("cli"), matching="key-7731")
        stays = {}
        for node in self.store.nodes():
            if node.uri in self.model:
                stays[node.uri] = node.content
        assert {text: c for text, c in stays.items() if c} == {
            text: c for text, c in self.model.items() if c and text in stays and stays[text]
        }  # fmt: skip
        gone = self.model.keys() - stays.keys()
        assert not any(uris.parse(one).contains(uris.parse(other)) for one in gone for other in stays)
        self.model = stays
        for row in self.store.database.query("SELECT * FROM events"):
            assert "key-7731" not in json.dumps(tuple(row), default=str)

    @invariant()
    def the_store_says_what_the_model_says(self) -> None:
        nodes = {node.uri: node for node in self.store.nodes()}
        assert {uri: node.content for uri, node in nodes.items() if uri not in BOOT_URIS} == self.model
        assert nodes.keys() >= set(BOOT_URIS)
        for priority, cap in PRIORITY_CAPS.items():
            assert sum(node.priority == priority and not node.is_boot for node in nodes.values()) <= cap


AnyWrites.TestCase.settings = settings(
    max_examples=20, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestAnySequenceOfWritesIsRebuiltIdentically = AnyWrites.TestCase


def test_a_memory_reads_the_same_after_it_was_closed_and_opened(store: Store, add: Add, person: Origin) -> None:
    add("w://a", glossary=("x",))
    set_settings(store, {"recall.weights.w_exact": 0.5}, person)
    before = projections(store)
    store.close()
    again = Store(store.database.path)
    assert projections(again) == before
    assert again.settings["recall.weights.w_exact"] == 0.5
    again.close()


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("DELETE FROM nodes WHERE uri = 'w://a'", "nodes"),
        ("UPDATE nodes SET content = 'other' WHERE uri = 'w://a'", "nodes"),
        ("INSERT INTO settings VALUES ('recall.weights.w_exact', '0.9')", "settings"),
        ("UPDATE uses SET how = 'none'", "uses"),
        ("DELETE FROM proposals", "proposals"),
        ("DROP TABLE views", "views"),
    ],
)
def test_verify_names_a_table_that_differs_from_the_log_and_rebuild_mends_it(
    store: Store, add: Add, person: Origin, agent: Origin, statement: str, table: str
) -> None:
    node = add("w://a")
    mark_used(store, "q", [node], "passed", person)
    update(store, uris.parse("core://soul"), NodePatch(content="x"), agent)
    before = projections(store)
    with store.database.write() as connection:
        connection.execute(statement)
    (problem, *_) = verify(store).problems
    assert table in problem
    assert rebuild(store) == store.counts()["events"]
    assert projections(store) == before
    assert store.settings["recall.weights.w_exact"] == 0.30
    assert verify(store).problems == ()


def test_an_event_that_cannot_be_read_is_named_and_rebuild_leaves_everything_as_it_was(store: Store, add: Add) -> None:
    add("w://a")
    with store.database.write() as connection:
        connection.execute("UPDATE events SET data = '{}' WHERE uri = 'w://a'")
    before = projections(store)
    seq = store.counts()["last_event"]
    assert f"event {seq} (create) cannot be replayed" in verify(store).problems[0]
    with pytest.raises(StorageError, match=f"event {seq}"):
        rebuild(store)
    assert projections(store) == before


def test_tables_that_contradict_the_log_give_a_plain_error_on_the_next_write(
    store: Store, add: Add, person: Origin
) -> None:
    add("w://a")
    with store.database.write() as connection:
        connection.execute("CREATE UNIQUE INDEX odd ON nodes (content) WHERE content <> ''")
    with pytest.raises(StorageError, match="contradicts its own log") as refusal:
        create(store, NodeDraft("w://b", "content"), person)
    assert "lore rebuild" in refusal.value.hint


def test_progress_of_a_rebuild_counts_events(store: Store, add: Add) -> None:
    add("w://a")
    seen: list[int] = []
    total = rebuild(store, seen.append)
    assert seen == list(range(1, total + 1))
