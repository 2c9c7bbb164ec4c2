from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core.address import base_address
from lorehooks.core.errors import InvalidError


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        ("", ""),
        ("  ", ""),
        ("http://localhost:11434/v1/", "http://localhost:11434/v1"),
        ("HTTPS://API.Example.com:443/v1/chat/completions", "https://api.example.com/v1"),
        ("https://host/api", "https://host/api"),
        ("https://host/v1/embeddings//embeddings", "https://host/v1"),
        ("http://[::1]:8000/v1/embeddings", "http://[::1]:8000/v1"),
    ],
)
def test_an_address_is_kept_as_its_base(given_: str, kept: str) -> None:
    assert base_address(given_) == kept
    assert base_address(kept) == kept


@pytest.mark.parametrize(
    "text",
    ["host/v1", "ftp://host", "https://", "https://a:b@host/v1", "https://host/v1?key=1", "https://host/v1#x",
     "https://host:99999/v1", "https://ho st/v1", "https://höst/v1", "https://[::1/v1", "x" * 10_000],
)  # fmt: skip
def test_what_is_no_address_is_refused_in_a_few_words(text: str) -> None:
    with pytest.raises(InvalidError) as caught:
        base_address(text)
    assert len(caught.value.message) < 200


@given(st.text() | st.text("htps:/[]@?#.0123456789v").map("http://".__add__))
def test_any_text_is_kept_or_refused_and_what_is_kept_stays_the_same(text: str) -> None:
    try:
        kept = base_address(text)
    except InvalidError:
        return
    assert base_address(kept) == kept
