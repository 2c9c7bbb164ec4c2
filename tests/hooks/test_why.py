"""`lore why` says what keeps a memory back, and what it proposes does what it says once it is done."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lorehooks.core.embeddings import load_builtin
from lorehooks.core.errors import NotFoundError
from lorehooks.core.home import Home
from lorehooks.core.model import NodeDraft, NodePatch, Origin
from lorehooks.core.runs import Recorder, Run
from lorehooks.core.store import Store
from lorehooks.core.uri import parse
from lorehooks.core.why import Prompt
from lorehooks.core.writes import create, set_settings, update
from lorehooks.hooks.why import Answer, why

PERSON = Origin("cli")
pytestmark = pytest.mark.skipif(
    load_builtin() is None, reason="no model of vectors here, and words alone hardly show anything"
)
MEMORIES = (
    ("project://shop", "The shop.", "", ()),
    (
        "project://shop/webhooks",
        "Refund webhooks are idempotent by event.id.",
        "When changing webhooks",
        ("refund webhook",),
    ),
    ("project://shop/retries", "Retry three times, then park the job.", "When a job fails", ("retry", "backoff")),
    ("project://shop/styles", "Buttons come from the design system.", "When styling a page", ("button", "tailwind")),
    ("project://bakery", "The bakery.", "", ()),
    ("project://bakery/ovens", "Ovens are preheated to 240 degrees.", "When starting an oven", ("oven", "preheat")),
    ("preferences://zh", "上线前先跑冒烟测试。", "上线前", ("冒烟测试",)),
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "lore")
    with closing(Store(home.database)) as store:
        for uri, content, disclosure, glossary in MEMORIES:
            create(store, NodeDraft(uri, content, 2, disclosure, glossary), PERSON)
    return home


def ask(home: Home, prompt: str, uri: str, project: str | None = "shop") -> Answer:
    return why(home, Prompt(prompt, project), parse(uri), datetime.now(UTC), lambda *_: lambda: None)


def record(home: Home, *prompts: str) -> None:
    recorder = Recorder(home.records)
    for prompt in prompts:
        run = Run("2031-05-04T11:00:00.000Z", "pi", "prompt.submit", "s", 1, None, "", 1.0, {"prompt": prompt},
                  {"asked": {"project": "shop"}, "candidates": []}, b"")  # fmt: skip
        recorder.add(lambda run=run: [run])
    assert recorder.flush()
    recorder.close()


def test_a_memory_that_is_shown_is_explained_and_nothing_is_proposed(home):
    answer = ask(home, "the refund webhook fires twice", "project://shop/webhooks")
    assert (answer.place.shown, answer.place.rank, answer.trials) == (True, 1, ())
    assert answer.place.candidate is not None
    assert "refund webhook" in answer.place.candidate.cues


@pytest.mark.parametrize(
    ("prompt", "uri"),
    [
        ("what happens when stripe calls us back", "project://shop/webhooks"),
        ("make that thing crimson", "project://shop/styles"),
        ("发版之前要做什么检查", "preferences://zh"),
    ],
)
def test_each_proposal_does_what_it_says_when_it_is_made(home, prompt, uri):
    before = home.database.read_bytes()
    answer = ask(home, prompt, uri)
    assert not answer.place.shown
    assert home.database.read_bytes() == before
    showing = [trial for trial in answer.trials if trial.place.shown]
    assert showing
    with closing(Store(home.database)) as store:
        node = store.require(parse(uri))
        for trial in showing:
            edit = trial.edit
            if edit.node is None:
                set_settings(store, dict(edit.settings), PERSON)
            else:
                new = edit.node
                update(store, parse(uri), NodePatch(None, new.priority, new.disclosure, new.glossary), PERSON)
            now = ask(home, prompt, uri).place
            assert now.shown
            assert now.score == pytest.approx(trial.place.score, abs=1e-3)
            update(store, parse(uri), NodePatch(None, node.priority, node.disclosure, node.glossary), PERSON)
            set_settings(store, {key: None for key, _ in edit.settings}, PERSON)


def test_a_word_that_would_disturb_other_prompts_comes_after_one_that_does_not(home):
    record(home, "crimson paint for the wall", "crimson is a colour", "is crimson red")
    answer = ask(home, "crimson sprocket please", "project://shop/styles")
    assert answer.recorded == 3
    by_word = {next(iter(trial.edit.adds)): trial for trial in answer.trials if len(trial.edit.adds) == 1}
    order = [next(iter(trial.edit.adds), "") for trial in answer.trials]
    assert order.index("sprocket") < order.index("crimson")
    assert by_word["sprocket"].effect.more == ()
    assert by_word["crimson"].effect.asked > 3
    assert len(by_word["crimson"].effect.more) >= 1


def test_what_lies_in_the_way_is_said(home):
    assert any("fixed boot node" in text for text in ask(home, "what are your rules", "core://agent").remarks)
    other = ask(home, "preheat the oven", "project://bakery/ovens", project="shop")
    assert other.place.shown or any("--project bakery" in text for text in other.remarks)
    assert any("glossary is empty" in text for text in ask(home, "sell things", "project://shop").remarks)
    assert any("slash command" in text for text in ask(home, "/clear now", "project://shop/retries").remarks)
    long = ask(home, "the " * 50 + "retry with backoff", "project://shop/retries")
    assert any("first 200 characters" in text for text in long.remarks)
    assert any(dict(trial.edit.settings).get("recall.safety.max_query_chars") for trial in long.trials)
    with pytest.raises(NotFoundError):
        ask(home, "anything", "project://none")


def test_one_that_only_others_keep_back_is_told_who_they_are(home):
    with closing(Store(home.database)) as store:
        for number in range(4):
            create(store, NodeDraft(f"project://shop/quokka_{number}", "x", 2, "", ("quokka",)), PERSON)
    answers = [ask(home, "quokka", f"project://shop/quokka_{number}") for number in range(4)]
    (held,) = [answer for answer in answers if not answer.place.shown]
    assert held.place.candidate is not None
    assert (held.place.candidate.withheld, held.place.rank, len(held.ahead)) == ("limit", 4, 3)
    assert any(dict(trial.edit.settings).get("recall.display.max_display_items") == 4 for trial in held.trials)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.text(max_size=60) | st.sampled_from(["", "\ud800", "退款 refund", "a" * 5000, "<recall>", "0"]))
def test_any_prompt_gets_an_answer(home, prompt):
    answer = ask(home, prompt, "project://shop/retries")
    assert json.dumps([trial.edit.what for trial in answer.trials])
