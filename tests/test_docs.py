"""The pages say what is so: links lead somewhere, commands and settings exist, every page and runtime is listed."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lorehooks.core.settings import SETTINGS
from lorehooks.installers import settingsdocs
from lorehooks.installers.catalog import INSTALLERS
from lorehooks.installers.cli import lore

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"
PAGES = [
    page
    for page in (*sorted(REPOSITORY.glob("*.md")), *sorted(DOCS.rglob("*.md")))
    if page.name != "cli.md"  # written from the commands themselves
]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def names(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def anchors(page: Path) -> set[str]:
    """The fragments of a page's headings, as code hosts make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_relative_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    dead = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (fragment and fragment not in anchors(target)):
            dead.append(link)
    assert dead == []


def commands(text: str) -> Iterator[str]:
    """Every `lore …` that a page tells to type: lines of shell blocks, and code within a sentence."""
    for language, block in FENCE.findall(text):
        if language in ("", "sh", "console"):
            for line in block.splitlines():
                yield from re.findall(r"(?:^|&& |\| |\$ )(?:[A-Z_]+=\S* )*(lore(?: [^#|&<>]*)?)", line.strip())
    for code in re.findall(r"`([^`\n]+)`", FENCE.sub("", text)):
        yield from re.findall(r"^(?:[A-Z_]+=\S+ )*(lore(?: [^|&<>]*)?)$", code)


def wrong_with(command: str) -> str:
    """What is wrong in a command by click's own reading, or nothing. Capitals stand for something of the reader's."""
    here: click.Command = lore
    context = click.Context(lore, info_name="lore")
    try:
        words = shlex.split(command)[1:]
        while words and isinstance(here, click.Group) and not words[0].startswith("-"):
            if words[0].isupper():
                return ""
            name, below, words = here.resolve_command(context, words)
            assert below is not None
            here, context = below, click.Context(below, context, info_name=name)
        said, extra, _ = here.make_parser(context).parse_args(words)
    except (ValueError, click.UsageError) as error:
        return error.format_message() if isinstance(error, click.UsageError) else str(error)
    if extra and not isinstance(here, click.Group):
        return f"{context.command_path} takes no {extra[0]!r}"
    known = {"runtimes": {*INSTALLERS, "mcp"}, "keys": SETTINGS, "key": SETTINGS}
    for name, things in known.items():
        given = said.get(name)
        for each in given if isinstance(given, list | tuple) else [given]:
            if isinstance(each, str) and each not in things and not each.isupper() and "…" not in each:
                return f"There is no {each!r} for {context.command_path}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_commands_on_a_page_exist(page: Path) -> None:
    found = {command.strip(): wrong_with(command) for command in commands(page.read_text(encoding="utf-8"))}
    assert {command: wrong for command, wrong in found.items() if wrong} == {}


def test_a_command_that_does_not_exist_is_found() -> None:
    page = """See `lore frobnicate`.

```sh
lore install emacs
A=b lore node get x --nope   # why
lore node ls a b
lore config set a.b 1
```
"""
    wrong = [wrong_with(command).removesuffix(".") for command in commands(page)]
    assert wrong == [
        "There is no 'emacs' for lore install",
        "No such option '--nope'",
        "lore node ls takes no 'b'",
        "There is no 'a.b' for lore config set",
        "There is no command 'lore frobnicate'",
    ]


def hints(tree: ast.AST) -> Iterator[str]:
    """Commands named in a program's own texts: code in a sentence, and hints that are a command."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (code for code in re.findall(r"`(lore [^`\n]+)`", node.value))
        if isinstance(node, ast.keyword) and node.arg in ("hint", "fix"):
            for part in ast.walk(node.value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.startswith("lore "):
                    yield part.value


def test_commands_that_messages_name_exist() -> None:
    context = click.Context(lore)
    missing = {}
    for room in ("core", "clients", "hooks", "installers"):
        for source in sorted((REPOSITORY / room).rglob("*.py")):
            for hint in hints(ast.parse(source.read_text(encoding="utf-8"))):
                name = re.match(r"lore ([a-z]+)(?: ([a-z]+))?", hint)  # what follows may be a value or a sentence
                if name is None:
                    continue
                command = lore.get_command(context, name[1])
                if command is None or (
                    isinstance(command, click.Group) and name[2] and not command.get_command(context, name[2])
                ):
                    missing[hint] = names(source)
    assert missing == {}


def test_the_page_of_settings_is_up_to_date() -> None:
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert page == settingsdocs.render(), "run: python -m lorehooks.installers.settingsdocs"


def test_the_readme_lists_every_page_and_every_runtime() -> None:
    linked = {link.partition("#")[0] for link in LINK.findall(README)}
    pages = {names(page) for page in DOCS.rglob("*.md") if page.parent.name != "decisions"}
    assert pages - linked == set()
    assert {name for name in INSTALLERS if f"`lore install {name}`" not in README} == set()


def test_decisions_are_short_and_have_numbers_of_their_own() -> None:
    decisions = sorted((DOCS / "decisions").glob("*.md"))
    numbers = [page.name[:4] for page in decisions]
    assert len(set(numbers)) == len(numbers)
    for page in decisions:
        text = page.read_text(encoding="utf-8")
        assert re.match(rf"# 0*{int(page.name[:4])}[.:] \S", text), f"{page.name} does not begin with its number"
        assert len(text.splitlines()) <= 80, f"{page.name} is long"


def test_every_page_can_be_found_in_git() -> None:
    if not (REPOSITORY / ".git").exists():
        pytest.skip("needs the git checkout")
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    linked = {link.partition("#")[0] for link in LINK.findall(README) if link.endswith(".md")}
    assert linked <= set(listed.stdout.split())
