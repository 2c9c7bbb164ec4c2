"""Every setting: key, type, default, bounds (recall seed; `lore-contract.md` 4.6).

Two places hold values. Settings of the memory (scope `memory`) are events in the store, so that they travel with it.
Settings of the machine (scope `machine`) stand in `config.toml` of the home: which server, which limits, which language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lorehooks.core.address import base_address
from lorehooks.core.errors import InvalidError, NotFoundError, short
from lorehooks.core.wellformed import well_formed

MAX_TEXT = 20_000
"""Characters of a text setting, such as the guidance."""

Value = bool | int | float | str
Scope = Literal["memory", "machine"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `minimum` and `maximum` are inclusive; `choices` closes a string; `is_address` makes it an endpoint's."""

    key: str
    default: Value
    about: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    scope: Scope = "memory"
    secret: bool = False
    is_address: bool = False

    @property
    def type(self) -> str:
        """`boolean`, `integer`, `number`, `enum` or `string`."""
        if isinstance(self.default, bool):
            return "boolean"
        if isinstance(self.default, int):
            return "integer"
        if isinstance(self.default, float):
            return "number"
        return "enum" if self.choices else "string"

    def check(self, value: object) -> Value:
        """The value in this setting's type. Raises InvalidError that names key, bounds and what was given."""
        kind = self.type
        if kind == "boolean":
            checked: Value | None = _as_bool(value)
        elif kind == "integer":
            checked = _as_int(value)
        elif kind == "number":
            checked = _as_float(value)
        else:
            checked = well_formed(value) if isinstance(value, str) else None
        if checked is None:
            article = "an" if kind in {"integer", "enum"} else "a"
            raise InvalidError(f"{self.key} takes {article} {kind}, not {short(value)}", status=400)
        if isinstance(checked, str) and len(checked) > MAX_TEXT:
            raise InvalidError(f"{self.key} has {len(checked)} characters, the limit is {MAX_TEXT}", status=400)
        if self.is_address and isinstance(checked, str):
            try:
                checked = base_address(checked)
            except InvalidError as error:
                raise InvalidError(f"{self.key}: {error.message}", hint=error.hint, status=400) from None
        if self.choices and checked not in self.choices:
            raise InvalidError(f"{self.key} is one of {', '.join(self.choices)}, not {short(value)}", status=400)
        if isinstance(checked, int | float) and not isinstance(checked, bool):
            if self.minimum is not None and checked < self.minimum:
                raise InvalidError(f"{self.key} is at least {self.minimum:g}, not {checked}", status=400)
            if self.maximum is not None and checked > self.maximum:
                raise InvalidError(f"{self.key} is at most {self.maximum:g}, not {checked}", status=400)
        return checked


def _as_bool(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {
            "true": True,
            "on": True,
            "yes": True,
            "1": True,
            "false": False,
            "off": False,
            "no": False,
            "0": False,
        }.get(value.strip().lower())
    return None


def _as_float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None  # also turns away NaN


def _as_int(value: object) -> int | None:
    number = _as_float(value)
    return int(number) if number is not None and number == int(number) else None


_TABLE = (
    # What a session is told
    Setting("lifecycle.guidance.enabled", True, "Put the guidance before the boot nodes"),
    Setting("lifecycle.guidance.global", "", "Guidance text; empty takes the built-in one"),
    Setting("lifecycle.boot.preamble", "", "Text before the boot nodes; empty takes the built-in one"),
    Setting("lifecycle.startup_recall.preamble", "", "Text before startup recall; empty takes the built-in one"),
    Setting("lifecycle.prompt_recall.preamble", "", "Text before the recall block of a prompt"),
    # Recall: weights, bonuses, display, safety (recall seed)
    Setting("recall.weights.w_exact", 0.30, "Weight of paths, terms and query words found as they are", 0, 1),
    Setting("recall.weights.w_glossary_semantic", 0.25, "Weight of terms close in meaning", 0, 1),
    Setting("recall.weights.w_dense", 0.30, "Weight of gist and question views close in meaning", 0, 1),
    Setting("recall.weights.w_lexical", 0.03, "Weight of full-text words, damped in long prompts", 0, 1),
    Setting("recall.bonus.priority_base", 0.05, "Bonus of priority 0", 0, 0.5),
    Setting("recall.bonus.priority_step", 0.01, "What each further priority loses of that bonus", 0, 0.1),
    Setting("recall.bonus.multi_view_step", 0.015, "Bonus for each further kind of view that matched", 0, 0.1),
    Setting("recall.bonus.multi_view_cap", 0.05, "Most that several views add together", 0, 0.3),
    Setting("recall.recency.enabled", True, "Favour recently updated memories"),
    Setting("recall.recency.half_life_days", 180.0, "Days after which the recency bonus halves", 7, 3650),
    Setting("recall.recency.max_bonus", 0.04, "Recency bonus of a memory written now", 0, 0.3),
    Setting("recall.recency.priority_exempt", 1, "Priorities up to this one always get the full recency bonus", -1, 10),
    Setting("recall.display.min_display_score", 0.60, "Candidates below this are withheld", 0, 1),
    Setting("recall.display.max_display_items", 3, "Most memories shown for one prompt", 1, 20),
    Setting(
        "recall.display.repeat", "always", "Show a memory again in the same session: always, or once per epoch",
        choices=("always", "once"),
    ),
    Setting("recall.safety.max_query_chars", 200, "Characters of a prompt that recall reads", 50, 2000),
    Setting("recall.safety.timeout_ms", 2000, "Recall that takes longer is skipped with a note", 500, 30000),
    Setting("views.weight.gist", 1.0, "Factor of a gist's closeness", 0, 2),
    Setting("views.weight.question", 0.96, "Factor of a question's closeness", 0, 2),
    Setting("views.prior.gist", 0.03, "Bonus when a gist matched", 0, 0.2),
    Setting("views.prior.question", 0.02, "Bonus when a question matched", 0, 0.2),
    # Embeddings and views by endpoint
    Setting(
        "embedding.provider", "builtin", "Where vectors come from", choices=("builtin", "openai_compatible", "off")
    ),
    Setting("embedding.base_url", "", "Address of an OpenAI-compatible embedding endpoint", is_address=True),
    Setting("embedding.model", "text-embedding-3-small", "Its model"),
    Setting(
        "view_llm.base_url", "", "Address of an OpenAI-compatible chat endpoint that writes views; empty is off",
        is_address=True,
    ),
    Setting("view_llm.model", "", "Its model"),
    Setting("view_llm.temperature", 0.2, "Its temperature", 0, 2),
    Setting("view_llm.timeout_ms", 60000, "Time limit of one call", 1000, 1800000),
    # Policy
    Setting("policy.priority_budget_enabled", True, "Hold priority 0 to 5 memories and priority 1 to 15"),
    Setting("policy.disclosure_warning_enabled", True, "Warn about a missing disclosure or OR wording in it"),
    Setting(
        "policy.boot_write", "review", "An agent's write to a boot node: wait for a person's yes, or take it at once",
        choices=("review", "allow"),
    ),
    # This machine
    Setting("language", "auto", "Language of guidance and notes", choices=("auto", "en", "zh"), scope="machine"),
    Setting("hooks.prompt_timeout_ms", 2000, "Most a prompt waits for memory", 200, 8000, scope="machine"),
    Setting("hooks.start_timeout_ms", 5000, "Most a session start waits for memory", 500, 8000, scope="machine"),
    Setting("hooks.subagent_boot", True, "Give subagents a short boot block", scope="machine"),
    Setting("service.idle_hours", 4.0, "Hours without use after which the local service ends", 0.001, 8760, scope="machine"),
    Setting("records.days", 30, "Days that records of hook runs are kept", 1, 3650, scope="machine"),
    Setting("records.megabytes", 200, "Most that records of hook runs take", 1, 100000, scope="machine"),
    Setting("backup.every_hours", 0.0, "Hours between automatic backups of the memory; 0 makes none", 0, 8760, scope="machine"),
    Setting("backup.keep", 7, "How many automatic backups are kept", 1, 1000, scope="machine"),
)  # fmt: skip

SETTINGS: Mapping[str, Setting] = {setting.key: setting for setting in _TABLE}


def find(key: str) -> Setting:
    """The definition of a key. Raises NotFoundError with the keys that look alike."""
    if key in SETTINGS:
        return SETTINGS[key]
    if key.endswith(".api_key"):
        raise NotFoundError("A key is no setting: it is kept for one address", hint="lore config key URL", status=400)
    from difflib import get_close_matches  # only a mistyped key pays for the import

    near = get_close_matches(key, SETTINGS, n=3)
    raise NotFoundError(
        f"There is no setting {key!r}",
        hint=f"did you mean {', '.join(near)}?" if near else "lore config list",
        status=400,
    )


class Settings(Mapping[str, Any]):
    """Values in force: the defaults with what was set on top. Immutable; values have the type of their default."""

    __slots__ = ("_changed",)

    def __init__(self, changed: Mapping[str, Value] | None = None) -> None:
        """Take checked values; unknown keys are left out, since an older or newer release may know them."""
        self._changed = {key: value for key, value in (changed or {}).items() if key in SETTINGS}

    def __getitem__(self, key: str) -> Any:
        return self._changed[key] if key in self._changed else SETTINGS[key].default

    def __iter__(self) -> Iterator[str]:
        return iter(SETTINGS)

    def __len__(self) -> int:
        return len(SETTINGS)

    @property
    def changed(self) -> Mapping[str, Value]:
        """Only what differs from the defaults by being set."""
        return dict(self._changed)
