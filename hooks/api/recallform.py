"""A recall in the contract's form: items, breakdowns, notices (`lore-contract.md` 1.9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lorehooks.clients.backend import Recalled
from lorehooks.core.blocks import seconds_of
from lorehooks.core.model import BOOT_URIS, VIEW_TYPES, Candidate, ViewType
from lorehooks.hooks.api.browse import STRATEGY
from lorehooks.hooks.api.fields import display_score
from lorehooks.hooks.api.operation import Answer, Call

_TRUNCATED = {
    "en": "User content is too long; recall only used the first {limit} characters."
    " Use lore_search for detailed related memories.",
    "zh": "内容过长，召回只读取了前 {limit} 个字符。需要更多相关记忆请用 lore_search。",
}
_TIMEOUT = {
    "en": "Recall took longer than {seconds} seconds and was skipped. Use lore_search for detailed related memories.",
    "zh": "召回超过 {seconds} 秒，已跳过。需要相关记忆请用 lore_search。",
}


class Breakdown(Answer):
    """The parts of a score, each with its weight; they add up to it. `semantic` is the dense signal."""

    exact: float
    glossary_semantic: float
    semantic: float
    lexical: float
    lexical_damp: float
    view: float
    priority: float
    multi_view: float
    recency: float


class Item(Answer):
    """A memory that was considered. The `_score` fields are the signals before their weights."""

    uri: str
    node_uuid: str
    score: float
    exact_score: float
    glossary_semantic_score: float
    dense_score: float
    lexical_score: float
    score_breakdown: Breakdown
    cues: list[str]
    matched_on: list[str]
    views: list[ViewType]
    priority: int
    memory_age_days: float | None
    recency_bonus: float
    score_display: float
    boot: bool
    withheld: str
    """Why it is not among the items: boot, score, limit; empty when it is. Ours."""


class Notice(Answer):
    """A line for the model that is no memory: recall read only a part, or took too long."""

    uri: Literal["notice://recall/query_truncated", "notice://recall/timeout"]
    score_display: None = None
    score: None = None
    cues: list[str]
    matched_on: tuple[Literal["notice"]] = ("notice",)


class Ready(Answer):
    ready: bool


class Suppressed(Answer):
    boot: int
    score: int


class RetrievalMeta(Answer):
    """How recall went. `without_vector` says why the prompt had no vector although there is a model for it; ours."""

    exact_candidates: int
    glossary_semantic_candidates: int
    dense_candidates: int
    lexical_candidates: int
    model: str | None
    strategy: str = STRATEGY
    without_vector: str = ""
    query_tokens: int
    query_chars: int
    original_query_chars: int
    query_truncated: bool
    query_char_limit: int
    recency_enabled: bool
    view_types: tuple[ViewType, ...] = VIEW_TYPES
    recall_timed_out: bool = False
    timeout_ms: int


class EventLog(Answer):
    query_id: str | None
    enabled: bool


class RecallAnswer(Answer):
    query: str
    index: Ready
    candidates: list[Item]
    items: list[Notice | Item]
    suppressed: Suppressed
    boot_uris: list[str]
    retrieval_meta: RetrievalMeta
    event_log: EventLog


@dataclass(frozen=True, slots=True)
class Wanted:
    """How the answer is to be given: the prompt as it came, and decimals of the displayed score."""

    prompt: str
    precision: int
    hides_boot: bool


def recall_answer(call: Call, recalled: Recalled, wanted: Wanted) -> RecallAnswer:
    """The whole answer of `POST /browse/recall`."""
    return _Rendering(call, recalled, wanted).answer()


class _Rendering:
    """One recall in the contract's form."""

    def __init__(self, call: Call, recalled: Recalled, wanted: Wanted) -> None:
        self.backend = call.parts.backend
        self.language = call.parts.language
        self.settings = self.backend.store.settings
        self.recalled = recalled
        self.result = recalled.result
        self.wanted = wanted

    def answer(self) -> RecallAnswer:
        result = self.result
        items = [self._item(one) for one in result.candidates]
        return RecallAnswer(
            query=self.wanted.prompt if result.timed_out_ms is None else "",
            index=Ready(ready=self.backend.ready.is_set()),
            candidates=items,
            items=[*self._notices(), *(item for item in items if not item.withheld)],
            suppressed=Suppressed(
                boot=sum(one.withheld == "boot" for one in result.candidates),
                score=sum(one.withheld == "score" for one in result.candidates),
            ),
            boot_uris=sorted(BOOT_URIS) if self.wanted.hides_boot else [],
            retrieval_meta=self._meta(),
            event_log=EventLog(query_id=self.recalled.query_id or None, enabled=bool(self.recalled.query_id)),
        )

    def _notices(self) -> list[Notice]:
        found = []
        if self.result.truncated_at is not None:
            text = _TRUNCATED[self.language].format(limit=self.result.truncated_at)
            found.append(Notice(uri="notice://recall/query_truncated", cues=[text]))
        if self.result.timed_out_ms is not None:
            text = _TIMEOUT[self.language].format(seconds=seconds_of(self.result.timed_out_ms))
            found.append(Notice(uri="notice://recall/timeout", cues=[text]))
        return found

    def _item(self, one: Candidate) -> Item:
        return Item(
            uri=one.uri,
            node_uuid=one.uuid,
            score=one.score,
            exact_score=one.raw.exact,
            glossary_semantic_score=one.raw.glossary_semantic,
            dense_score=one.raw.dense,
            lexical_score=one.raw.lexical,
            score_breakdown=Breakdown(
                exact=one.weighted.exact,
                glossary_semantic=one.weighted.glossary_semantic,
                semantic=one.weighted.dense,
                lexical=one.weighted.lexical,
                lexical_damp=self.result.lexical_damp,
                view=one.weighted.view,
                priority=one.weighted.priority,
                multi_view=one.weighted.multi_view,
                recency=one.weighted.recency,
            ),
            cues=list(one.cues),
            matched_on=sorted(one.matched_on),
            views=list(one.views),
            priority=one.priority,
            memory_age_days=one.age_days,
            recency_bonus=one.weighted.recency,
            score_display=display_score(one.score, self.wanted.precision),
            boot=one.uri in BOOT_URIS,
            withheld=one.withheld,
        )

    def _meta(self) -> RetrievalMeta:
        found = self.result.candidates
        embedder = self.backend.live.embedder
        return RetrievalMeta(
            exact_candidates=sum(one.raw.exact > 0 for one in found),
            glossary_semantic_candidates=sum(one.raw.glossary_semantic > 0 for one in found),
            dense_candidates=sum(one.raw.dense > 0 for one in found),
            lexical_candidates=sum(one.raw.lexical > 0 for one in found),
            model=embedder.profile if embedder else None,
            without_vector=str(self.result.meta.get("without_vector", "")),
            query_tokens=self.result.query_words,
            query_chars=len(self.result.query),
            original_query_chars=len(self.wanted.prompt),
            query_truncated=self.result.truncated_at is not None,
            query_char_limit=int(self.settings["recall.safety.max_query_chars"]),
            recency_enabled=bool(self.settings["recall.recency.enabled"]),
            recall_timed_out=self.result.timed_out_ms is not None,
            timeout_ms=int(self.settings["recall.safety.timeout_ms"]),
        )
