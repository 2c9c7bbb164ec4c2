"""YAML files are changed by single entries: nothing else moves, what means the same stays the same, and there is a way back."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.installers.edits import Append, Delete, Put, Remove, Restore
from lorehooks.installers.problem import RefusedError
from lorehooks.installers.yamlformat import YamlFormat

NAME = Path("/home/user/.hermes/config.yaml")
PROVIDER = Put(("memory", "provider"), "lorehooks")
ENABLED = Append(("plugins", "enabled"), "lorehooks")
FORMAT = YamlFormat()


def apply(text: str, *edits):
    edited = FORMAT.apply(text.encode(), edits, NAME)
    return edited.content.decode(), edited.undo


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "memory:\n  provider: lorehooks\n"),
        ("# nothing yet\n", "# nothing yet\nmemory:\n  provider: lorehooks\n"),
        ("a: 1", "a: 1\nmemory:\n  provider: lorehooks\n"),
        ("a: |\n  text\n", "a: |\n  text\nmemory:\n  provider: lorehooks\n"),
        ("---\na: 1\r\n", "---\na: 1\r\nmemory:\r\n  provider: lorehooks\r\n"),
        ("memory:\n    limit: 1  # mine\nz: 2\n", "memory:\n    provider: lorehooks\n    limit: 1  # mine\nz: 2\n"),
        ("memory:\n  provider: mem0 # mine\n", "memory:\n  provider: lorehooks # mine\n"),
        ("memory:\n  provider: ''\n", "memory:\n  provider: lorehooks\n"),
        ("memory:\n  provider:\n  x: 1\n", "memory:\n  provider: lorehooks\n  x: 1\n"),
        ("memory:   # all of it\n  # provider: x\na: 1\n", "memory: {provider: lorehooks}   # all of it\n  # provider: x\na: 1\n"),
        ("memory: null\n", "memory: {provider: lorehooks}\n"),
        ("memory: {}\n", "memory: {provider: lorehooks}\n"),
        ("{memory: {limit: 1}, a: 2}", "{memory: {provider: lorehooks, limit: 1}, a: 2}"),
        ("{}\n", "{memory: {provider: lorehooks}}\n"),
        ("\ufeffa: 1\n", "\ufeffa: 1\nmemory:\n  provider: lorehooks\n"),
    ],
)  # fmt: skip
def test_a_setting_is_put_in_and_taken_back(before, after):
    text, undo = apply(before, PROVIDER)
    assert text == after
    assert apply(text, PROVIDER) == (text, ())
    back, _ = apply(text, *undo)
    assert FORMAT.same(FORMAT.read(back.encode(), NAME), FORMAT.read(before.encode(), NAME))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "plugins:\n  enabled:\n    - lorehooks\n"),
        ("plugins:\n  disabled: []\n", "plugins:\n  enabled:\n    - lorehooks\n  disabled: []\n"),
        ("plugins:\n  enabled:\n  - a # mine\n  - b\nz: 1\n", "plugins:\n  enabled:\n  - a # mine\n  - b\n  - lorehooks\nz: 1\n"),
        ("plugins:\n  enabled:\n    -   a", "plugins:\n  enabled:\n    -   a\n    -   lorehooks"),
        ("plugins: {enabled: [a, ]}\n", "plugins: {enabled: [a, lorehooks]}\n"),
        ("plugins:\n  enabled: [a]\n", "plugins:\n  enabled: [a, lorehooks]\n"),
        ("plugins:\n  enabled: []\n", "plugins:\n  enabled: [lorehooks]\n"),
        ("plugins:\n  enabled:\n", "plugins:\n  enabled: [lorehooks]\n"),
    ],
)  # fmt: skip
def test_an_element_is_put_into_a_list_and_taken_back(before, after):
    text, undo = apply(before, ENABLED)
    assert text == after
    assert apply(text, ENABLED) == (text, ())
    back, _ = apply(text, *undo)
    assert FORMAT.same(FORMAT.read(back.encode(), NAME), FORMAT.read(before.encode(), NAME))


def test_what_a_person_wrote_since_stays():
    text, undo = apply("memory:\n  provider: mem0\n", PROVIDER)
    changed = text.replace("lorehooks", "honcho")
    edited = FORMAT.apply(changed.encode(), undo, NAME)
    assert edited.content.decode() == changed
    assert edited.stays == ("memory.provider was changed since and stays",)
    text, undo = apply("a: 1\n", PROVIDER, ENABLED)
    more = text.replace("  provider: lorehooks\n", "  provider: lorehooks # a word\n  limit: 5\n").replace(
        "    - lorehooks\n", "    - lorehooks\n    - zeta\n"
    )
    assert apply(more, *undo)[0] == "a: 1\nmemory:\n  # a word\n  limit: 5\nplugins:\n  enabled:\n    - zeta\n"


def test_a_restored_value_is_the_old_text():
    assert apply("m: {p: new, q: 1}\n", Restore(("m", "p"), "new", "'old'"))[0] == "m: {p: 'old', q: 1}\n"
    assert apply("m: {p: new}\n", Restore(("m",), {"p": "new"}, ""))[0] == "m:\n"


def test_the_last_element_leaves_an_empty_list_and_the_last_member_an_empty_mapping():
    assert apply("p:\n  - lorehooks\nq: 1\n", Remove(("p",), "lorehooks"))[0] == "p: []\nq: 1\n"
    assert apply("m:\n  a:\n    b: x\n", Delete(("m", "a", "b"), "x"))[0] == "m:\n  a: {}\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1\n", 2),
        ("a: 1\n  b: 2\n", 2),
        ("\ta: 1\n", 1),
        ("- a\n", 1),
        ("memory: words\n", 1),
        ("memory:\n  - a\n", 2),
        ("memory: {provider: a, provider: b}\n", 1),
        ("x: &x {provider: a}\nmemory: *x\n", 2),
        ("memory:\n  provider: |\n    text\n", 2),
        ("memory:\n  provider: [a]\n", 2),
        ("a: 1\n...\n", 0),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: !!python/none x\n", 1),
        ("a: 2020-13-45\n", 0),
    ],
)
def test_what_is_doubtful_is_refused_with_its_place_and_what_to_paste(text, line):
    with pytest.raises(RefusedError) as refused:
        apply(text, PROVIDER)
    assert refused.value.line == line
    assert refused.value.snippet == "memory:\n  provider: lorehooks\n"


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(RefusedError):
        FORMAT.read(b"a: \xff\n", NAME)


def test_kinds_are_told_apart():
    read = lambda text: FORMAT.read(text.encode(), NAME)  # noqa: E731
    assert not FORMAT.same(read("a: 1"), read("a: true"))
    assert not FORMAT.same(read("a: 1"), read("a: '1'"))
    assert FORMAT.same(read("a: .nan\nb: 2020-01-01"), read("{b: 2020-01-01, a: .NaN}"))


KEYS = st.sampled_from(["memory", "provider", "plugins", "enabled", "naïve", "on", "1"])
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["lorehooks", "line\nline\n"])
)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=10
)


@given(
    st.dictionaries(KEYS, TREES, max_size=5),
    st.sampled_from([None, True, False]),
    st.integers(2, 4),
    st.sampled_from([PROVIDER, ENABLED]),
)
def test_in_any_form_of_yaml_the_edit_is_made_and_undone_or_refused(data, flow, indent, edit):
    text = yaml.safe_dump(data, default_flow_style=flow, indent=indent, allow_unicode=True, sort_keys=False)
    try:
        edited = FORMAT.apply(text.encode(), (edit,), NAME)
    except RefusedError:
        return
    plain = FORMAT.read(edited.content, NAME)
    assert FORMAT.contains(plain, edit)
    back = FORMAT.apply(edited.content, edited.undo, NAME)
    assert FORMAT.same(FORMAT.read(back.content, NAME), FORMAT.read(text.encode(), NAME))
