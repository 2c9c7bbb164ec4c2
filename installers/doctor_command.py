"""`lore doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

import click

from lorehooks.clients import output
from lorehooks.clients.command import Invocation, json_option, pass_invocation
from lorehooks.installers.doctor.examine import examine, label
from lorehooks.installers.doctor.finding import Finding
from lorehooks.installers.doctor.mending import Mended, mend
from lorehooks.installers.plan import Context

_COLOURS = {"note": "yellow", "problem": "red"}


@click.command()
@click.option("--fix", is_flag=True, help="Mend what can be mended without a question, then look again.")
@click.option("--no-self-test", is_flag=True, help="Start nothing: leave out running each hook once.")
@json_option
@pass_invocation
def doctor(invocation: Invocation, *, fix: bool, no_self_test: bool) -> int:
    """Find out what is wrong, and say what mends it. Exit code 1 when there is a problem."""
    context = Context.from_environment()
    with output.waiting("Looking at programs, service, memory and agents…"):
        findings = examine(context, self_test=not no_self_test)
        done = mend(context, findings) if fix else ()
        if done:
            findings = examine(context, self_test=not no_self_test)
    problems = sum(each.severity == "problem" for each in findings)
    if invocation.as_json:
        found = [asdict(each) for each in findings]
        mended = [asdict(each) for each in done]
        output.say_json({"home": context.home.root, "problems": problems, "findings": found, "mended": mended})
    else:
        _tell(findings, done)
    return 1 if problems else 0


def _tell(findings: Sequence[Finding], done: Sequence[Mended]) -> None:
    for step in done:
        text = f"failed   {step.what}: {step.problem}" if step.problem else f"mended   {step.what}"
        output.say(text, fg="red" if step.problem else "green")
    order = list(dict.fromkeys(each.area for each in findings))
    for area, group in groupby(sorted(findings, key=lambda each: order.index(each.area)), key=lambda each: each.area):
        output.say(label(area), bold=True)
        for each in group:
            cure = f" ({each.fix})" if each.fix else ""
            output.say(f"  {each.severity:<7}  {each.what}{cure}", fg=_COLOURS.get(each.severity))
    output.say()
    _conclude(findings)


def _conclude(findings: Sequence[Finding]) -> None:
    problems = [each for each in findings if each.severity == "problem"]
    if not problems:
        output.say("Nothing is wrong.", fg="green")
        return
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    mends = sum(each.fixable for each in problems)
    output.say(f"{count}{f'; lore doctor --fix mends {mends}' if mends else ''}.", fg="red")
