"""Edits of JSON files: only our entries change, and what is doubtful is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lorehooks.installers import jsonedit
from lorehooks.installers.edits import Append, Delete, Edit, Prune, Put, Remove, Restore, from_json, to_json
from lorehooks.installers.jsondata import contains, look_up, normal
from lorehooks.installers.jsontext import parse, same
from lorehooks.installers.problem import RefusedError

ENTRY = {"hooks": [{"type": "command", "command": "ours", "timeout": 10}]}
START = Append(("hooks", "SessionStart"), ENTRY)
PROMPT = Append(("hooks", "UserPromptSubmit"), ENTRY)


def edit(content: bytes, *edits: Edit, dialect: str = "json") -> bytes:
    return jsonedit.apply(content, edits or (START, PROMPT), name="settings.json", dialect=dialect).content


def there_and_back(content: bytes, *edits: Edit, dialect: str = "json") -> bytes:
    done = jsonedit.apply(content, edits or (START, PROMPT), name="settings.json", dialect=dialect)
    return jsonedit.apply(done.content, done.undo, name="settings.json", dialect=dialect).content


@pytest.mark.parametrize("name", ["01_plain.json", "03_bom.json", "13_lookalike.json", "16_bigint_float.json"])
def test_a_foreign_entry_keeps_its_bytes_and_ours_leave_none(case, name):
    content = case(name)
    edited = edit(content)
    kept = content.removesuffix(b"}").rstrip()
    assert edited != content
    assert edited[: content.index(b"{") + 1] == content[: content.index(b"{") + 1]
    assert all(line in edited.split(b"\n") for line in kept.split(b"\n") if b"user-one" in line)
    assert there_and_back(content) == content


@pytest.mark.parametrize(
    ("name", "line", "column", "reason"),
    [
        ("02_trailing_comma.json", 3, 13, "trailing comma"),
        ("04_torn.json", 15, 24, "half written"),
        ("06_array_root.json", 1, 1, "the document is not an object"),
        ("07_hooks_null.json", 1, 11, "hooks is not an object"),
        ("08_hooks_list.json", 1, 11, "hooks is not an object"),
        ("09_event_dict.json", 1, 28, "hooks.SessionStart is not a list"),
        ("11_dup_keys.json", 1, 25, "'hooks' is there twice"),
        ("14_utf16.json", 1, 1, "UTF-16"),
        ("15_latin1.json", 1, 14, "not UTF-8"),
        ("20_oc.jsonc", 2, 3, "a comment"),
    ],
)
def test_a_doubtful_file_is_refused_with_its_place_and_the_text_to_paste(case, name, line, column, reason):
    with pytest.raises(RefusedError) as caught:
        jsonedit.apply(case(name), (START, PROMPT), name=f"/h/{name}")
    assert (caught.value.line, caught.value.column) == (line, column)
    assert reason in caught.value.message
    assert f"/h/{name}:{line}:{column}" in caught.value.message
    assert json.loads(caught.value.snippet) == {"hooks": {"SessionStart": [ENTRY], "UserPromptSubmit": [ENTRY]}}


@pytest.mark.parametrize("name", ["02_trailing_comma.json", "20_oc.jsonc", "22_oc_empty_object.jsonc"])
def test_comments_and_trailing_commas_stay_where_the_host_reads_them(case, name):
    content = case(name)
    before, after = (parse(each, name=name, dialect="jsonc") for each in (content, edit(content, dialect="jsonc")))
    assert after.comment_texts == before.comment_texts
    assert look_up(after.plain, START.path)[0]
    assert there_and_back(content, dialect="jsonc") == content


def test_an_empty_file_becomes_a_document(case):
    assert json.loads(edit(case("05_empty.json"))) == {"hooks": {"SessionStart": [ENTRY], "UserPromptSubmit": [ENTRY]}}


def test_numbers_that_no_double_holds_keep_their_spelling(case):
    edited = edit(case("16_bigint_float.json"))
    assert b'{"id": 12345678901234567890, "f": 1e400, "t": 1.10, "hooks"' in edited


def test_the_form_of_the_file_is_kept():
    assert edit(b'{"a":1}', Put(("b",), [1, 2])) == b'{"a":1,"b":[1,2]}'
    assert edit(b'{"a": 1}', Put(("b",), [1, 2])) == b'{"a": 1, "b": [1, 2]}'
    assert edit(b'{\r\n\t"a": 1\r\n}\r\n', Put(("b",), {})) == b'{\r\n\t"a": 1,\r\n\t"b": {}\r\n}\r\n'
    assert (
        edit(b'{\n    "a": [\n        1\n    ]\n}', Append(("a",), 2))
        == b'{\n    "a": [\n        1,\n        2\n    ]\n}'
    )
    assert edit(b"{}", Put(("a",), 1)) == b'{\n  "a": 1\n}'
    assert edit('{"é": {}}'.encode(), Put(("é", "한"), "→")) == '{"é": {"한": "→"}}'.encode()


def test_a_note_behind_the_last_member_stays_with_it():
    content = b'{\n  "a": 1 // mine\n}\n'
    edited = edit(content, Put(("b",), 2), dialect="jsonc")
    assert edited == b'{\n  "a": 1, // mine\n  "b": 2\n}\n'
    assert there_and_back(content, Put(("b",), 2), dialect="jsonc") == content


def test_an_entry_that_is_there_is_left_and_not_ours_to_remove():
    content = b'{"allow": ["x"], "on": true}'
    done = jsonedit.apply(content, (Append(("allow",), "x"), Put(("on",), value=True)), name="f")
    assert (done.content, done.undo) == (content, ())


def test_a_replaced_value_comes_back_in_its_old_spelling():
    assert there_and_back(b'{"limit": 1.10}', Put(("limit",), 5)) == b'{"limit": 1.10}'


def test_a_value_the_user_changed_since_stays_and_is_named():
    undo = (Delete(("a",), 1), Restore(("b",), 2, "1.10"))
    done = jsonedit.apply(b'{"a": 7, "b": 8}', undo, name="f")
    assert done.content == b'{"a": 7, "b": 8}'
    assert done.stays == ("a was changed since and stays", "b was changed since and stays")


def test_a_foreign_entry_that_looks_like_ours_is_not_removed(case):
    content = case("13_lookalike.json")
    assert edit(content, Remove(("hooks", "Stop"), ENTRY)) == content


def test_json5_is_read_and_edited():
    content = b"// settings\n{ plugins: { entries: { 'x': { on: true, n: 0x1F, }, }, }, }"
    edited = edit(content, Put(("plugins", "entries", "lore"), {"on": True}), dialect="json5")
    assert look_up(parse(edited, name="f", dialect="json5").plain, ("plugins", "entries", "lore", "on")) == (True, True)
    assert there_and_back(content, Put(("plugins", "entries", "lore"), {"on": True}), dialect="json5") == content


def test_a_document_too_deep_to_read_is_refused():
    with pytest.raises(RefusedError, match="nested deeper"):
        edit(b'{"a":' * 5000 + b"1" + b"}" * 5000)


# --- any document

KEYS = st.sampled_from(["hooks", "SessionStart", "servers", "lore", "allow", "", "naïve", "日"])
SCALARS = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=6) | st.just(ENTRY)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
DIALECTS = st.sampled_from(["json", "jsonc"])
PATHS = st.lists(KEYS, min_size=1, max_size=3).map(tuple)
ADDITIONS = st.lists(st.builds(Put, PATHS, TREES) | st.builds(Append, PATHS, TREES), min_size=1, max_size=4)


@given(data=st.data(), dialect=DIALECTS, additions=ADDITIONS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_edit_of_any_document_does_what_it_says_and_can_be_undone(json_documents, data, dialect, additions):
    content = data.draw(json_documents(dialect))
    try:
        done = jsonedit.apply(content, additions, name="f", dialect=dialect)
    except RefusedError as error:
        refused = error.reason
    else:
        refused = ""
    if refused:
        assert "is not a" in refused or "is there twice" in refused
        return
    before, after = (parse(each, name="f", dialect=dialect) for each in (content, done.content))
    if not any(isinstance(each, Restore) for each in done.undo):  # a replaced value takes its own comments with it
        assert after.comment_texts == before.comment_texts
    assert contains(after.plain, additions[-1])
    again = jsonedit.apply(done.content, additions[-1:], name="f", dialect=dialect)
    assert again.content == done.content
    back = jsonedit.apply(done.content, done.undo, name="f", dialect=dialect)
    undone = parse(back.content, name="f", dialect=dialect)
    assert undone.comment_texts == before.comment_texts
    assert same(undone.plain, before.plain)


@given(data=st.data(), dialect=DIALECTS)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_members_that_others_add_meanwhile_survive_our_removal_to_the_byte(json_documents, data, dialect):
    content = data.draw(json_documents(dialect))
    ours, theirs = Put(("ours of lore",), {"x": [1]}), Put(("theirs",), {"y": 2})
    only_theirs = jsonedit.apply(content, (theirs,), name="f", dialect=dialect).content
    done = jsonedit.apply(content, (ours,), name="f", dialect=dialect)
    both = jsonedit.apply(done.content, (theirs,), name="f", dialect=dialect).content
    back = jsonedit.apply(both, done.undo, name="f", dialect=dialect).content
    assert parse(back, name="f", dialect=dialect).plain == parse(only_theirs, name="f", dialect=dialect).plain
    assert back.split(b'"theirs"')[1:] == both.split(b'"theirs"')[1:]


@given(value=TREES)
def test_a_value_written_into_a_receipt_comes_back_as_the_same_edit(value):
    for each in (Put(("a", "b"), value), Append(("a",), value), Restore(("a", 1), value, "1.10"), Prune(("a",))):
        assert from_json(json.loads(json.dumps(to_json(each)))) == each


@given(value=TREES)
def test_what_is_written_reads_as_it_was(value):
    assert parse(json.dumps(value).encode(), name="f").plain == normal(value)


def test_the_cases_are_all_here():
    assert len(list((Path(__file__).parents[1] / "cases" / "cfg").iterdir())) == 18
