from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core.errors import InvalidError, LoreError, NotFoundError
from lorehooks.core.model import Origin
from lorehooks.core.settings import MAX_TEXT, SETTINGS, Setting, Settings, find
from lorehooks.core.store import Store
from lorehooks.core.writes import set_settings

anything = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers()
    | st.sampled_from([10**400, -(10**6000), "1e999", "NaN", "٣", "\ud83d", "0x10", " 1 ", "١e400", object()])
    | st.lists(st.integers()) | st.dictionaries(st.text(), st.none())
)  # fmt: skip


@given(st.sampled_from(list(SETTINGS.values())), anything)
def test_any_value_is_taken_in_its_type_and_bounds_or_refused_in_plain_words(setting: Setting, value: object) -> None:
    try:
        checked = setting.check(value)
    except LoreError as refusal:
        error = refusal
    else:
        error = None
    if error is not None:
        assert setting.key in error.message
        assert len(error.message) < 400
        return
    assert type(checked) is type(setting.default)
    assert setting.check(checked) == checked
    if setting.minimum is not None and not isinstance(checked, str):
        assert setting.minimum <= checked <= (setting.maximum or checked)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda setting: setting.key)
def test_each_default_is_allowed_and_each_bound_is_the_last_value_allowed(setting: Setting) -> None:
    assert setting.check(setting.default) == setting.default
    for bound, beyond in ((setting.minimum, -1), (setting.maximum, 1)):
        if bound is not None:
            setting.check(bound if setting.type == "number" else int(bound))
            with pytest.raises(InvalidError):
                setting.check(bound + beyond)


def test_numbers_may_come_as_text_and_words_for_yes_and_no_are_read() -> None:
    assert SETTINGS["recall.display.max_display_items"].check("7") == 7
    assert SETTINGS["recall.weights.w_exact"].check("0.5") == 0.5
    assert SETTINGS["recall.recency.enabled"].check("off") is False


def test_a_text_setting_has_an_end() -> None:
    guidance = SETTINGS["lifecycle.guidance.global"]
    assert guidance.check("字" * MAX_TEXT)
    with pytest.raises(InvalidError, match="limit"):
        guidance.check("字" * (MAX_TEXT + 1))


def test_a_mistyped_key_names_the_ones_that_look_alike() -> None:
    with pytest.raises(NotFoundError, match=r"recall\.display\.min_display_score"):
        find("recall.display.min_score")


def test_several_settings_are_set_together_or_not_at_all(store: Store, person: Origin) -> None:
    with pytest.raises(InvalidError):
        set_settings(store, {"recall.weights.w_exact": 0.5, "recall.weights.w_dense": 7}, person)
    assert store.settings.changed == {}


def test_a_setting_of_this_machine_is_not_put_into_the_memory(store: Store, person: Origin) -> None:
    with pytest.raises(InvalidError, match="machine"):
        set_settings(store, {"language": "zh"}, person)


def test_setting_and_resetting_are_seen_at_once_and_only_changes_are_logged(store: Store, person: Origin) -> None:
    before = store.counts()["events"]
    set_settings(store, {"recall.weights.w_exact": 0.5}, person)
    set_settings(store, {"recall.weights.w_exact": 0.5}, person)
    assert store.settings["recall.weights.w_exact"] == 0.5
    set_settings(store, {"recall.weights.w_exact": None}, person)
    assert store.settings["recall.weights.w_exact"] == 0.30
    assert store.counts()["events"] == before + 2


def test_a_stored_value_that_this_release_does_not_allow_counts_as_not_set(store: Store, person: Origin) -> None:
    with store.transaction(person) as transaction:
        for key, value in (
            ("recall.weights.w_exact", 99),
            ("recall.weights.w_new", 1),
            ("recall.recency.enabled", "?"),
        ):
            transaction.append("setting", {"key": key, "value": value}, node_uuid=None, uri=None)
    assert dict(store.settings) == dict(Settings())
