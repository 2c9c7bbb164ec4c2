from __future__ import annotations

import json

import pytest

from lorehooks.clients.adapters.payload import decode, string, text_of


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"   \n",
        b'{"session_id": "s-1", "cwd": "',
        b'{"prompt": "a"}\n{"prompt": "b"}',
        b'{"prompt": "a"}\x00',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"session_id": ' + b"9" * 5000 + b"}",
        b"\xff\xfe{\x00}\x00",
        b"plain words",
    ],
    ids=["empty", "blank", "half", "two", "nul tail", "deep list", "deep object", "huge number", "utf-16", "words"],
)
def test_what_is_not_one_document_is_none(raw):
    assert decode(raw) is None


def test_a_byte_order_mark_is_accepted():
    assert decode(b'\xef\xbb\xbf{"prompt": "deploy key?"}') == {"prompt": "deploy key?"}


def test_bytes_that_are_not_utf8_do_not_lose_the_rest():
    assert decode(b'{"prompt": "d\xe9 key?"}') == {"prompt": "d\ufffd key?"}


def test_a_lone_surrogate_becomes_a_character_that_can_be_written():
    payload = decode(rb'{"prompt": "deploy \ud83d key"}')
    assert text_of(payload["prompt"]) == "deploy \ufffd key"
    assert text_of("\ud83d\ude80 go") == "🚀 go"


def test_a_list_of_parts_gives_its_words_and_no_media():
    parts = [
        {"type": "image", "text": "no", "source": {"data": "AAAA"}},
        {"type": "text", "text": "what is"},
        "this",
        None,
        7,
        [["x"]],
    ]
    assert text_of(parts) == "what is\nthis"


@pytest.mark.parametrize("value", [None, 42, True, {}, [], [None], {"type": "image"}, {"text": 5}])
def test_what_has_no_words_is_empty(value):
    assert text_of(value) == ""


def test_a_deeply_nested_prompt_does_not_exhaust_the_stack():
    nested = json.loads("[" * 900 + "]" * 900)
    assert text_of(nested) == ""


def test_the_first_named_field_with_something_in_it_counts():
    assert string({"a": " ", "b": 3, "c": " x "}, "a", "b", "c", "d") == "x"
    assert string({}, "a") is None
