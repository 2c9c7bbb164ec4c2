"""What recall reckons with at the moment, as statistics and debug answers show it."""

from __future__ import annotations

from lorehooks.clients.embedded import EmbeddedBackend
from lorehooks.core.model import BOOT_URIS, VIEW_TYPES, ViewType
from lorehooks.hooks.api.browse import STRATEGY
from lorehooks.hooks.api.operation import Answer
from lorehooks.hooks.api.pages import GENERATOR

_WEIGHTS = ("recall.weights.", "recall.bonus.")


class EmbeddingView(Answer):
    """Where vectors come from. Keys are never shown."""

    provider: str
    base_url: str
    model: str | None


class ModelView(Answer):
    """The model that writes views, where one is set."""

    enabled: bool
    base_url: str | None
    model: str
    timeout_ms: int
    temperature: float


class ViewsView(Answer):
    generator_version: str = GENERATOR
    view_types: tuple[ViewType, ...] = VIEW_TYPES
    weights: dict[str, float]
    priors: dict[str, float]
    llm: ModelView


class ScoringView(Answer):
    strategy: str = STRATEGY


class RecencyView(Answer):
    enabled: bool
    half_life_days: float
    max_bonus: float
    priority_exempt: int


class DisplayView(Answer):
    min_display_score: float
    max_display_items: int


class SafetyView(Answer):
    max_query_chars: int
    timeout_ms: int


class RuntimeView(Answer):
    embedding: EmbeddingView
    memory_views: ViewsView
    scoring: ScoringView
    recency: RecencyView
    weights: dict[str, float]
    display: DisplayView
    safety: SafetyView
    core_memory_uris: list[str]


def runtime_view(backend: EmbeddedBackend) -> RuntimeView:
    """The settings of recall in force."""
    settings = backend.store.settings
    embedder = backend.live.embedder
    return RuntimeView(
        embedding=EmbeddingView(
            provider=settings["embedding.provider"],
            base_url=settings["embedding.base_url"],
            model=embedder.profile if embedder else None,
        ),
        memory_views=ViewsView(
            weights={view: settings[f"views.weight.{view}"] for view in VIEW_TYPES},
            priors={view: settings[f"views.prior.{view}"] for view in VIEW_TYPES},
            llm=ModelView(
                enabled=bool(settings["view_llm.base_url"] and settings["view_llm.model"]),
                base_url=settings["view_llm.base_url"] or None,
                model=settings["view_llm.model"],
                timeout_ms=settings["view_llm.timeout_ms"],
                temperature=settings["view_llm.temperature"],
            ),
        ),
        scoring=ScoringView(),
        recency=RecencyView(
            enabled=settings["recall.recency.enabled"],
            half_life_days=settings["recall.recency.half_life_days"],
            max_bonus=settings["recall.recency.max_bonus"],
            priority_exempt=settings["recall.recency.priority_exempt"],
        ),
        weights={
            key.removeprefix(start): settings[key] for key in settings for start in _WEIGHTS if key.startswith(start)
        },
        display=DisplayView(
            min_display_score=settings["recall.display.min_display_score"],
            max_display_items=settings["recall.display.max_display_items"],
        ),
        safety=SafetyView(
            max_query_chars=settings["recall.safety.max_query_chars"], timeout_ms=settings["recall.safety.timeout_ms"]
        ),
        core_memory_uris=sorted(BOOT_URIS),
    )
