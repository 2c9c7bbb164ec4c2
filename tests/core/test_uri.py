from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorehooks.core.errors import InvalidError
from lorehooks.core.uri import MAX_LENGTH, Uri, has_date, parse, parse_for_write

segments = st.from_regex(r"[a-z0-9]{1,6}(_[a-z0-9]{1,6}){0,2}", fullmatch=True)
addresses = st.builds(lambda domain, path: Uri(domain, "/".join(path)), segments, st.lists(segments, min_size=1))


@given(addresses)
def test_an_address_reads_back_as_itself(uri: Uri) -> None:
    assert parse(str(uri)) == uri
    if len(str(uri)) <= MAX_LENGTH:
        assert parse_for_write(str(uri)) == uri


@given(st.text() | st.text(alphabet=":/ aB_\x00\ud83dİ"))
def test_any_text_is_an_address_or_a_plain_error_and_reading_it_twice_changes_nothing(text: str) -> None:
    try:
        uri = parse(text)
    except InvalidError:
        assert text.count("://") > 1
        return
    str(uri).encode()
    assert parse(str(uri)) == uri


@given(st.text(max_size=40))
def test_what_may_be_written_keeps_to_the_grammar(text: str) -> None:
    try:
        uri = parse_for_write(text)
    except InvalidError:
        return
    assert str(uri).isascii()
    assert all(segment.replace("_", "").isalnum() for segment in uri.segments)


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("agent", "core://agent"),
        ("://agent", "core://agent"),
        ("Project://Shop/", "project://shop"),
        (" project:///shop//api/ ", "project://shop/api"),
        ("project://", "project://"),
        ("core:// a / b ", "core://a/b"),
    ],
)
def test_people_may_be_sloppy_with_slashes_case_and_spaces(text: str, uri: str) -> None:
    assert str(parse(text)) == uri


@pytest.mark.parametrize(
    "text",
    ["project://my-topic", "project://a__b", "project://_a", "project://a b", "project://部署", "project://", "a/b://c",
     "We Ird://a", "project://" + "a" * MAX_LENGTH],
)  # fmt: skip
def test_a_new_address_that_breaks_the_grammar_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidError):
        parse_for_write(text)


def test_a_second_scheme_is_refused_and_not_cut_off() -> None:
    with pytest.raises(InvalidError, match="two '://'"):
        parse("project://a/core://b")


def test_an_underscore_is_no_wildcard_in_what_lies_below() -> None:
    assert parse("w://a_b").contains(parse("w://a_b/kid"))
    assert not parse("w://a_b").contains(parse("w://axb/kid"))
    assert not parse("w://a").contains(parse("w://ab"))
    assert parse("w://").contains(parse("w://a"))
    assert not parse("w://").contains(parse("v://a"))


@pytest.mark.parametrize("path", ["notes/2024", "notes/2024_05_13", "fix_20240513", "notes/2024/05"])
def test_a_moment_in_a_path_is_noticed(path: str) -> None:
    assert has_date(Uri("project", path))


@pytest.mark.parametrize("path", ["http2", "port_8080", "sha256", "year_12024"])
def test_other_numbers_in_a_path_are_no_moment(path: str) -> None:
    assert not has_date(Uri("project", path))
