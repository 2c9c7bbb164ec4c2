from __future__ import annotations

from dataclasses import replace

import pytest

from lorehooks.core.model import Node
from lorehooks.core.views import language, rule_views, signature

NODE = Node(
    "u1", "project://checkout_api/webhooks", "Send events from the outbox, never inline.", 1,
    "When a state change has to notify a merchant.", ("webhook", "outbox"), "t", "t", "t",
)  # fmt: skip
CHINESE = replace(NODE, content="事件一律从 outbox 发出，不许在请求里直接回调。", disclosure="需要通知商户时。")


def texts(node: Node) -> dict[str, str]:
    return {view.type: view.text for view in rule_views(node)}


def test_gist_is_content_and_disclosure() -> None:
    assert texts(NODE)["gist"] == f"{NODE.content}\n{NODE.disclosure}"


def test_question_has_several_questions_from_path_disclosure_and_glossary() -> None:
    lines = texts(NODE)["question"].splitlines()
    assert len(lines) == 3
    assert "checkout api webhooks" in lines[0]
    assert "a state change has to notify a merchant" in lines[1]
    assert "webhook, outbox" in lines[2]


def test_views_of_chinese_content_are_chinese() -> None:
    assert all(language(text) == "zh" for text in texts(CHINESE).values())
    assert "需要通知商户的时候" in texts(CHINESE)["question"]


def test_a_long_content_is_shortened_and_an_empty_one_still_asks() -> None:
    assert len(texts(replace(NODE, content="word " * 1000))["gist"].splitlines()[0]) <= 421
    assert list(texts(replace(NODE, content="", disclosure="", glossary=()))) == ["question"]


@pytest.mark.parametrize(
    "change", [{"uri": "project://a/b"}, {"content": "x"}, {"disclosure": "x"}, {"glossary": ("webhook",)}]
)
def test_signature_follows_what_feeds_the_views(change: dict[str, object]) -> None:
    assert signature(replace(NODE, **change)) != signature(NODE)  # type: ignore[arg-type]


def test_signature_ignores_the_rest() -> None:
    assert signature(replace(NODE, priority=4, updated_at="later", client_type="codex")) == signature(NODE)


def test_signature_tells_where_one_term_ends() -> None:
    assert signature(replace(NODE, glossary=("ab", "c"))) != signature(replace(NODE, glossary=("a", "bc")))


def test_signature_is_the_same_in_every_release() -> None:
    assert signature(NODE) == "6a64bf5982ab77a946aaf8d5a915b75e564ab2cc5f04a47b81adc12dd9b4b311"
