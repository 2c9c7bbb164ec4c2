"""Codex: three hooks in `$CODEX_HOME/hooks.json`, the memory tools by `codex mcp add`, and no plugin.

A plugin would have to be reviewed again at each update, since Codex hashes its content. These entries never change between
releases, so a trust once given holds. `config.toml` is written by Codex alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import tomli_w

from lorehooks.core.errors import ConflictError, LoreError
from lorehooks.installers import codextrust, hosts, pluginhost, receipt
from lorehooks.installers.codexstate import (
    FIX,
    HOOKS,
    RUNTIME,
    SERVER,
    Found,
    findings,
    has_inline,
    look,
    spoilers,
    wanted,
)
from lorehooks.installers.codextrust import Trust
from lorehooks.installers.edits import Append, Edit
from lorehooks.installers.hookentries import prunes, take_out
from lorehooks.installers.jsonedit import snippet
from lorehooks.installers.plan import (
    Context,
    Detection,
    EditFile,
    Finding,
    HostCall,
    HostCommand,
    Plan,
    Question,
    Touched,
)
from lorehooks.installers.problem import RefusedError
from lorehooks.installers.registered import registered_bridge
from lorehooks.installers.tomlformat import read as read_toml


def trust_is_missing(context: Context) -> bool:
    """Whether Codex would not run all our hooks, and can be asked to. Raises RefusedError where its files cannot be read."""
    return context.which("codex") is not None and not _all_trusted(look(context))


def _all_trusted(found: Found) -> bool:
    return found.good.keys() == wanted(found.home).keys() and all(each.state == "trusted" for each in found.trust)


TRUST = Question(
    "trust",
    "Codex runs a hook only when you trust it. May lore record in Codex that you trust its three hooks?",
    "Codex runs no hook before you trust it: start codex and choose to trust the three hooks of lore, or run "
    f"{FIX} --trust.",
    trust_is_missing,
)


class Codex:
    """See the module."""

    name = "codex"
    questions = (TRUST,)

    def detect(self, context: Context) -> Detection:
        bare = {key: value for key, value in context.environment.items() if key != RUNTIME.home_variable}
        folder = RUNTIME.home(context.environment).absolute()
        found = pluginhost.detect(replace(context, environment=bare), self.name, folder)
        here, needed = hosts.version_in(found.version), hosts.version_in(RUNTIME.oldest_seen)
        if here is not None and needed is not None and here < needed:
            return replace(found, problem=f"{found.version} is too old: {RUNTIME.oldest_seen} or newer is needed")
        return found

    def plan(self, context: Context) -> Plan:
        ours = {name: Append((*HOOKS, name), group) for name, group in wanted(context.home).items()}
        found = _look(context, ours)
        for text, hint in found.conflicts():
            raise ConflictError(text, hint=hint)
        if RUNTIME.home_variable in context.environment and not found.hooks_file.parent.is_dir():
            raise LoreError(
                f"CODEX_HOME is {found.hooks_file.parent}, which is not there", hint=f"mkdir {found.hooks_file.parent}"
            )
        edits: list[Edit] = [*take_out(found.stale)]
        edits += [edit for name, edit in ours.items() if name not in found.good]
        trusted, program = _all_trusted(found), context.which("codex")
        call = HostCall(
            "codex app-server to record your trust in the hooks",
            partial(_trust, context),
            needed=program is not None and context.granted(TRUST.key) and not trusted,
        )
        command = HostCommand(
            ("codex", "mcp", "add", SERVER, "--", *registered_bridge(context.home, self.name)),
            needed=found.server != "ours",
            touches=(Touched(found.config_file, "toml"),),
        )
        return Plan(
            commands=(command,) if program else (),
            edits=(EditFile(found.hooks_file, tuple(edits), mode=0o644),) if edits else (),
            calls=(call,),
            notes=tuple(_notes(context, found, trusted=trusted)),
        )

    def leftovers(self, context: Context) -> Plan:
        found = look(context)
        noted = context.receipt is not None and context.receipt.note(found.hooks_file) is not None
        own = found.hooks.own
        edits = (*take_out(own), *(() if noted else prunes(own, HOOKS)))
        keys = found.recorded
        forget = HostCall("codex app-server to forget the trust in them", partial(_forget, context))
        return Plan(
            commands=(HostCommand(("codex", "mcp", "remove", SERVER)),) if found.server == "ours" else (),
            edits=(EditFile(found.hooks_file, edits),) if own else (),
            calls=(forget,) if keys else (),
            notes=tuple(_moved_up(found)),
        )

    def check(self, context: Context) -> tuple[Finding, ...]:
        try:
            found = look(context)
        except RefusedError as error:
            return (Finding("unreadable", "error", f"Codex's settings cannot be read: {error.message}", error.hint),)
        program = context.which("codex")
        return (*findings(found, program=program is not None), *_trust_findings(trust_states(context, found)))


def _look(context: Context, ours: Mapping[str, Edit]) -> Found:
    """The same as `look`; a refusal tells what to paste."""
    try:
        return look(context)
    except RefusedError as error:
        if error.path.suffix == ".json":
            error.snippet = snippet(tuple(ours.values()))
        raise


def trust_states(context: Context, found: Found | None = None) -> tuple[Trust, ...]:
    """How Codex stands to each hook of ours that works. Raises RefusedError where its files cannot be read.

    Codex itself is asked only where a hash is recorded that is not the one we expect.
    """
    found = look(context) if found is None else found
    states = found.trust
    program = context.which("codex")
    if program is None or all(each.state != "modified" for each in states):
        return states
    try:
        said = codextrust.ask(program, context.environment, tuple(found.good.values()))
    except LoreError:
        return states
    return tuple(replace(each, state=said.get(each.key, each.state)) for each in states)


def _trust_findings(states: tuple[Trust, ...]) -> Iterator[Finding]:
    texts = {
        "untrusted": ("Codex does not run our hook for {}: it is not trusted yet", f"{FIX} --trust"),
        "modified": ("Codex does not run our hook for {}: it was changed since it was trusted", f"{FIX} --trust"),
        "disabled": ("Our hook for {} is switched off in Codex", "start codex and switch it on under /hooks"),
    }
    for each in states:
        if each.state in texts:
            text, fix = texts[each.state]
            yield Finding(each.state, "error", text.format(each.event), fix, by_person=True)


def _trust(context: Context) -> None:
    program = context.which("codex")
    if program is not None:
        codextrust.trust(program, context.environment, tuple(look(context).good.values()))


def _forget(context: Context) -> None:
    """Take our records out, and the tables around them when they were not there before and hold nothing else."""
    program = context.which("codex")
    if program is None:
        raise LoreError("codex is not on the PATH")
    found = look(context)
    keys, note = found.recorded, context.receipt.note(found.config_file) if context.receipt else None
    before = read_toml((receipt.original(context.home, note) if note else None) or b"", found.config_file)
    hooks = dict(found.config["hooks"])
    state = {key: value for key, value in hooks.pop("state").items() if key not in keys}
    empty = []
    if not state and "state" not in before.get("hooks", {}):
        empty = ["hooks.state"] if hooks or "hooks" in before else ["hooks.state", "hooks"]
    codextrust.forget(program, context.environment, keys, empty)


def _moved_up(found: Found) -> Iterator[str]:
    """Codex knows hooks by their place: those behind ours get another one."""
    own = found.hooks.own
    later = {
        entry.event
        for entry in found.hooks.all
        for ours in own
        if entry not in own and entry.way == ours.way and (entry.group, entry.handler) > (ours.group, ours.handler)
    }
    if later:
        names = " and ".join(sorted(later))
        yield f"Codex will want other hooks for {names} to be trusted again, since they stood behind ours."


def _notes(context: Context, found: Found, *, trusted: bool) -> Iterator[str]:
    yield "Codex gets its memory from the next session on."
    program = context.which("codex")
    if not trusted and not (program and context.granted(TRUST.key)):
        yield TRUST.without
    if program is None and found.server != "ours":
        name, *arguments = registered_bridge(context.home, "codex")
        table = tomli_w.dumps({"mcp_servers": {SERVER: {"command": name, "args": arguments}}})
        yield (
            f"The codex command is not on the PATH, so its memory tools were not added: run {FIX} where it is, "
            f"or paste this into {found.config_file}:\n{table}"
        )
    if has_inline(found):
        yield "Codex will warn that hooks stand both in config.toml and in hooks.json; both run."
    for text in spoilers(found.content, found.hooks.plain):
        yield f"Codex drops {found.hooks_file} as a whole, and our hooks with it, as long as this is so: {text}."
