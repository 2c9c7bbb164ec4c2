from __future__ import annotations

import pytest

from lorehooks.core.errors import ConflictError, NotFoundError
from lorehooks.core.history import history, rollback
from lorehooks.core.model import NodePatch, Origin
from lorehooks.core.proposals import accept, pending, reject
from lorehooks.core.rebuild import verify
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.core.writes import set_settings, update

AGENT = parse("core://agent")


def test_an_agents_write_to_a_boot_node_waits_and_a_persons_does_not(
    store: Store, agent: Origin, person: Origin
) -> None:
    result = update(store, AGENT, NodePatch(content="do as I say"), agent)
    assert result.proposal is not None
    assert result.changes == ()
    assert store.require(AGENT).content == ""
    update(store, AGENT, NodePatch(content="my rules"), person)
    assert store.require(AGENT).content == "my rules"


@pytest.mark.parametrize(
    "origin",
    [Origin("mcp:lore_update_node"), Origin("api:PUT /browse/node", "pi"), Origin("api:PUT /browse/node", "mcp")],
)
def test_whatever_way_an_agent_takes_it_waits(store: Store, origin: Origin) -> None:
    assert update(store, AGENT, NodePatch(content="x"), origin).proposal is not None


def test_an_agents_rollback_of_a_boot_node_waits_as_well(store: Store, agent: Origin, person: Origin) -> None:
    update(store, AGENT, NodePatch(content="one"), person)
    first = history(store, AGENT)[0].seq
    update(store, AGENT, NodePatch(content="two"), person)
    assert rollback(store, AGENT, first, agent).proposal is not None
    assert store.require(AGENT).content == "two"


def test_the_policy_can_let_agents_write_at_once(store: Store, agent: Origin, person: Origin) -> None:
    set_settings(store, {"policy.boot_write": "allow"}, person)
    assert update(store, AGENT, NodePatch(content="x"), agent).proposal is None
    assert store.require(AGENT).content == "x"


def test_an_accepted_proposal_is_written_and_noted_in_the_history(store: Store, agent: Origin, person: Origin) -> None:
    number = update(store, AGENT, NodePatch(content="new"), agent).proposal
    assert number is not None
    (waiting,) = pending(store)
    assert (waiting.number, waiting.before["content"], waiting.after["content"]) == (number, "", "new")
    assert accept(store, number, person).changes[0].after is not None
    assert store.require(AGENT).content == "new"
    assert history(store, AGENT)[0].data["proposal"] == number
    assert pending(store) == []
    assert verify(store).problems == ()


def test_what_a_person_wrote_meanwhile_to_other_fields_survives_an_accepted_proposal(
    store: Store, agent: Origin, person: Origin
) -> None:
    number = update(store, AGENT, NodePatch(disclosure="Always"), agent).proposal
    update(store, AGENT, NodePatch(content="written since"), person)
    assert pending(store)[0].after["content"] == "written since"
    accept(store, number or 0, person)
    node = store.require(AGENT)
    assert (node.content, node.disclosure) == ("written since", "Always")


def test_a_rejected_proposal_changes_nothing_and_stays_in_the_log(store: Store, agent: Origin, person: Origin) -> None:
    number = update(store, AGENT, NodePatch(content="new"), agent).proposal or 0
    reject(store, number, person)
    assert store.require(AGENT).content == ""
    assert pending(store) == []
    assert store.events("WHERE seq = ?", (number,))[0].data["after"]["content"] == "new"


def test_the_same_proposal_again_waits_only_once(store: Store, agent: Origin) -> None:
    first = update(store, AGENT, NodePatch(content="new"), agent).proposal
    assert update(store, AGENT, NodePatch(content="new"), agent).proposal == first
    assert update(store, AGENT, NodePatch(content="newer"), agent).proposal != first
    assert len(pending(store)) == 2


def test_a_proposal_is_decided_once_and_an_unknown_one_never(store: Store, agent: Origin, person: Origin) -> None:
    number = update(store, AGENT, NodePatch(content="new"), agent).proposal or 0
    accept(store, number, person)
    for verb in (accept, reject):
        with pytest.raises(ConflictError, match="accepted already"):
            verb(store, number, person)
        for unknown in (0, -1, 10**6, 10**30):
            with pytest.raises(NotFoundError):
                verb(store, unknown, person)
