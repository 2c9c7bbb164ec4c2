"""Writes `docs/configuration.md` from the settings: `python -m lorehooks.installers.settingsdocs`. A test holds the two together."""

from __future__ import annotations

from pathlib import Path

from lorehooks.clients.runtimes import RUNTIMES
from lorehooks.core.settings import SETTINGS, Setting

_HEAD = """# Configuration

Nothing needs to be set. Written by `python -m lorehooks.installers.settingsdocs` from the settings themselves.

```sh
lore config list                                    # every setting with its value
lore config list --changed                          # what differs from the defaults
lore config set recall.display.max_display_items 5
lore config reset recall.display.max_display_items
```

A value out of bounds is refused with the bounds. A change counts from the next hook on.

## Settings

Those of the **memory** are events in its log: they travel with it, and with another server in use they are that server's.
Those of the **machine** stand in `config.toml` in the home.
"""

_SECTIONS = (
    ("lifecycle.", "What a session is told"),
    ("recall.", "Recall"),
    ("views.", "Views"),
    ("embedding.", "Vectors"),
    ("view_llm.", "Views written by a model"),
    ("policy.", "Policy"),
    ("", "This machine"),
)

_TAIL = """
## Which memory is used

The first row that names an address wins, and brings its own token; the two never come from different rows.
`lore connect` says which row is in force.

| | address | token |
|---|---|---|
| environment | `LORE_BASE_URL` | `LORE_API_TOKEN` |
| `lore connect` | `server.url` in `config.toml`; may be `embedded` or an `ssh://` address | `credentials.toml`, under the origin of that address |
| the public Lore's own file | `base_url` in `~/.lore/config.json`, which is only read | `api_token` in the same file |
| none of these | the memory in `~/.lore/lore.db` | none is needed |

`server.url` is changed by `lore connect`, which tries the server first, and never by `lore config set`. A token goes to the
origin it was given for and nowhere else; over plain http it goes to this machine only, unless `lore connect
--allow-insecure-http` said otherwise. A wrong address is told and not skipped: the next row would split the memory in two.

## Environment variables

| variable | what it does |
|---|---|
| `LORE_HOME` | another home than `~/.lore` |
| `LORE_DISABLE` | with any value but empty and `0`: hooks, plugins and memory tools do nothing; commands work as ever |
| `LORE_BASE_URL`, `LORE_API_TOKEN` | see above; the service reads them when it starts (`lore service restart`) |
| `VISUAL`, `EDITOR` | the editor for `lore boot --edit URI` and `lore node update URI --edit` |
| `NO_COLOR` | no colours |

Where an agent keeps its settings is read from the agent's own variables:

| agent | variable | without it |
|---|---|---|
"""


def render() -> str:
    """The whole page."""
    parts = [_HEAD]
    left = dict(SETTINGS)
    for prefix, title in _SECTIONS:
        mine = [left.pop(key) for key in list(left) if key.startswith(prefix)]
        rows = "\n".join(_row(setting) for setting in mine)
        parts.append(
            f"\n### {title}\n\n| setting | default | bounds | scope | what it is |\n|---|---|---|---|---|\n{rows}\n"
        )
    parts.append(_TAIL)
    for runtime in RUNTIMES.values():
        variable = f"`{runtime.home_variable}`" if runtime.home_variable else "none"
        if runtime.home_below_variable:
            variable += f", and in it `{runtime.home_below_variable}/`"
        parts.append(f"| {runtime.label} | {variable} | `~/{runtime.home_default}` |\n")
    return "".join(parts)


def _row(setting: Setting) -> str:
    default = "empty" if setting.default == "" else f"`{_plain(setting.default)}`"
    return f"| `{setting.key}` | {default} | {_bounds(setting)} | {setting.scope} | {setting.about} |"


def _bounds(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.minimum is None or setting.maximum is None:
        return {"boolean": "`true`, `false`", "string": "an address" if setting.is_address else "text"}[setting.type]
    return f"{_plain(setting.minimum)} to {_plain(setting.maximum)}"


def _plain(value: float | str) -> str:
    """A value as one types it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Write the page into the repository this file stands in."""
    page = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
    page.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
