"""How much a piece of a text says before anything is counted, and when a prompt is beside the work.

A memory is worth an interruption when it changes what is done. A prompt about the look, the spelling or the meaning of
a word names the right words and still needs no memory: such pieces weigh as much as a topic that no memory covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from lorehooks.core.stopwords import CJK_COMMON_WORDS, CJK_FUNCTION_CHARS, COMMON_WORDS, FUNCTION_WORDS, GENERIC_WORDS
from lorehooks.core.text import Token, sequence, stem

COMMON, GENERIC = 0.3, 0.6
PAIR, PAIR_WITH_GRAMMAR = 0.6, 0.15
MAX_ASIDE = 4

_FUNCTION_STEMS = frozenset(map(stem, FUNCTION_WORDS)) | FUNCTION_WORDS
_COMMON_STEMS = frozenset(map(stem, COMMON_WORDS)) | COMMON_WORDS
_GENERIC_STEMS = frozenset(map(stem, GENERIC_WORDS))

_MEANING = """
stand for, stands for, meaning of, what does it mean, difference between, definition, define, explain,
in one sentence, in two sentences, in simple terms, in plain words, how do you say, how do you spell, translate,
translation of, synonym, pronounce, pronunciation, acronym, just the name, history of, who invented, git blame,
tutorial, cheat sheet, syntax for, official site, homepage, website, blog, rss, release notes of
什么意思, 啥意思, 区别, 怎么说, 怎么念, 怎么读, 怎么翻, 翻成, 译成, 解释, 定义, 全称, 缩写, 一句话, 两句话, 通俗, 科普, 直觉, 官网,
下载页, 博客, 教程, 由来
"""
_LOOK = """
spelling, misspell, misspelled, misspelt, typo, grammar, capitalize, capitalise, uppercase, lowercase, punctuation,
font, icon, logo, favicon, png, svg, jpg, jpeg, gif, screenshot, picture, photo, slide, slides, deck, presentation, poster,
blurry, pixelated, printer, printout, webcam, projector, keyboard, headset, headphones, wallpaper, diagram, sticker,
upside down, indentation, latex, pdf page
图标, 图片, 截图, 字体, 拼写, 错别字, 矢量, 打印, 幻灯片, 流程图, 架构图, 示意图, 海报, 壁纸, 排版, 居中, 大小写, 标点, 模糊, 放大,
字号, 配图, 插图, 投影, 摄像头, 键盘, 耳机, 颠倒, 贴纸, 表情包
"""
_FOLLOW_UP = """
again, same, last bit, previous, earlier, above, undo, second option, first option, go ahead, carry on, continue, so far
再, 刚才, 同样, 上面, 还是, 继续, 刚刚那, 上一, 前面
"""
_PAPERWORK = """
docs, md, changelog, comment in the ticket, typo in
文档里, 说明书
"""
_LEAVE = """
can i, can we, can the, can this, can it, could i, could we, may i, may we, should i, should we, should the, should it,
should, shall i, shall we, must i, must we, do i, do we, have to, need to, needs to, supposed to, allowed to, are we allowed,
ok to, okay to, is it ok, is that ok, ok, okay, fine to, safe to, good enough, good idea, i will, i ll, i want, we want,
i would like, i d like, let s, lets, going to, about to, how do i, how do we, how long should, where do i, where do we,
where should, which should, what should, what do i, what else, is there another way, anything you would, objections, right
能不能, 可以吗, 可以吧, 可以不, 行不行, 行吗, 行吧, 可不可以, 要不要, 需要, 应该, 能否, 好吗, 该不该, 是不是该, 要改, 直接, 先把, 打算,
准备, 我想, 我要, 想把, 怎么改, 怎么办, 怎么处理, 新加, 新增, 加个, 加一个, 要加, 接一个, 没问题吧, 有问题吗, 有没有坑
"""
_WEIGHTS = ((_MEANING, 1.5), (_LOOK, 1.0), (_FOLLOW_UP, 0.5), (_PAPERWORK, 0.5))


def weight_of(token: Token) -> float:
    """0..1: grammar says nothing, everyday words a little, words of every project more, the rest all."""
    key = token.key
    if token.kind == "word":
        if key in _FUNCTION_STEMS or token.surface.lower() in FUNCTION_WORDS or (len(key) == 1 and key.isascii()):
            return 0.0
        if key in _COMMON_STEMS or key.isdigit():
            return COMMON
        return GENERIC if key in _GENERIC_STEMS else 1.0
    if token.kind == "pair":
        if key in CJK_COMMON_WORDS:
            return 0.0
        grammar = (key[0] in CJK_FUNCTION_CHARS) + (key[1] in CJK_FUNCTION_CHARS)
        return (PAIR, PAIR_WITH_GRAMMAR, 0.0)[grammar]
    return 1.0 if token.kind == "whole" else 0.0


def asides(items: Sequence[Token]) -> Iterator[tuple[int, int, float]]:
    """(start, end, weight) of words and phrases that turn a prompt away from the work, in a spoken sequence."""
    table = _aside_table()
    keys = [item.key for item in items]
    for start in range(len(keys)):
        for length in range(min(MAX_ASIDE, len(keys) - start), 0, -1):
            weight = table.get(tuple(keys[start : start + length]))
            if weight:
                yield start, start + length, weight
                break


def asks_leave(items: Sequence[Token]) -> bool:
    """Whether a prompt asks what may or must be done, or says what is about to be: the moment a memory is for."""
    table = _leave_table()
    keys = [item.key for item in items]
    return any(
        tuple(keys[start : start + length]) in table
        for start in range(len(keys))
        for length in range(1, min(MAX_ASIDE, len(keys) - start) + 1)
    )


@cache
def _aside_table() -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for text, weight in _WEIGHTS:
        for key in _phrases(text):
            found.setdefault(key, weight)
    return found


@cache
def _leave_table() -> frozenset[tuple[str, ...]]:
    return frozenset(_phrases(_LEAVE))


def _phrases(text: str) -> Iterator[tuple[str, ...]]:
    for phrase in text.replace("\n", ",").split(","):
        key = sequence(phrase)
        if key:
            yield key
