"""The two texts of a memory that are embedded for recall, made by rule from what the person wrote.

The gist is what the memory says; the question is when one would ask for it (seed "Generated views";
`lore-contract.md` 5.9). Both are written in the language of the content, Chinese or English.
"""

from __future__ import annotations

import hashlib
import re

from lorehooks.core.model import Node, View
from lorehooks.core.text import cjk_letters

GIST_CHARS = 420
PREVIEW_CHARS = 900
DISCLOSURE_CHARS = 140
MAX_TERMS = 8
_CJK_SHARE = 0.15
_OCCASION = re.compile(r"^(?:when(?:ever)?|if|while|before|after|as soon as)\s+", re.IGNORECASE)
_OCCASION_ZH = re.compile(r"^(?:当|在|如果|每当)?(?P<what>.*?)(?:的时候|时候|之前|之后|时)?[。．.]?$", re.DOTALL)


def language(text: str) -> str:
    """`zh` when a good part of the letters are Chinese, else `en`."""
    chinese = cjk_letters(text)
    if not chinese:
        return "en"
    return "zh" if chinese / sum(map(str.isalnum, text)) > _CJK_SHARE else "en"


def rule_views(node: Node) -> tuple[View, ...]:
    """Gist and question of a node. A node without any text still has a question from its path."""
    gist = gist_text(node)
    question = View("question", "\n".join(_questions(node)))
    return (View("gist", gist), question) if gist else (question,)


def gist_text(node: Node) -> str:
    """Beginning of the content, then the disclosure; empty parts left out."""
    parts = (_short(_flat(node.content)[:PREVIEW_CHARS], GIST_CHARS), _short(_flat(node.disclosure), DISCLOSURE_CHARS))
    return "\n".join(part for part in parts if part)


def signature(node: Node) -> str:
    """Changes if and only if something that feeds the views changes (URI, content, disclosure, glossary).

    Kept with what a model wrote, so it must never change for another reason: that would throw away paid work.
    """
    parts = (node.uri, node.content, node.disclosure, *node.glossary)
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(framed.encode("utf-8", "surrogatepass")).hexdigest()


def path_words(node: Node) -> str:
    """The path as words: `checkout_api/webhooks` is `checkout api webhooks`."""
    return re.sub(r"[/_]+", " ", node.path).strip()


def _questions(node: Node) -> list[str]:
    chinese = language(f"{node.content} {node.disclosure}") == "zh"
    occasion = _flat(node.disclosure)[:DISCLOSURE_CHARS].strip()
    terms = [term for term in dict.fromkeys(map(_flat, node.glossary)) if term][:MAX_TERMS]
    topic = path_words(node) or node.uri
    if chinese:
        lines = [f"关于{topic}，要知道什么？"]
        if occasion:
            lines.append(f"{_occasion_zh(occasion)}，要注意什么？")
        if terms:
            lines.append(f"说到{'、'.join(terms)}，我们怎么做？")
    else:
        lines = [f"What should I know about {topic}?"]
        if occasion:
            lines.append(f"What matters when {_occasion_en(occasion)}?")
        if terms:
            lines.append(f"What do we do about {', '.join(terms)}?")
    return lines


def _occasion_en(disclosure: str) -> str:
    """A disclosure as a clause: its leading `When` and its full stop go."""
    return _OCCASION.sub("", disclosure).rstrip(" .。")


def _occasion_zh(disclosure: str) -> str:
    found = _OCCASION_ZH.match(disclosure)
    what = found.group("what").strip() if found else ""
    return f"{what or disclosure}的时候"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit].rstrip() + "…"
