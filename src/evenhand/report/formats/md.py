"""The report as Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from evenhand.core.display import Cell, DisplayTable, Figure, Number, Section, escape_markdown, make_table
from evenhand.core.findings import Finding
from evenhand.messages import showable
from evenhand.messages.formats import rounded
from evenhand.report import front, page, short
from evenhand.report.formats import Files
from evenhand.report.wording import PageWording

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

_MOST_ROWS = 40


def make(audit: Audit) -> Files:
    """Return the whole report as one Markdown file."""
    wording = page.wording_of(audit)
    lines = [*_front_page(audit, wording)]
    for section in audit.sections().values():
        head = wording.section(section)
        lines += [f"## {_inline(head['title'])}", "", _inline(head["question"]), ""]
        lines += [f"{_inline(note)}\n" for note in map(wording.message, section.notes)]
        for part in section.parts:
            if isinstance(part, Figure):
                lines += [f"**{_inline(part.title)}.** {_inline(part.description)}", ""]
            elif not part.folded:
                lines += [f"**{_inline(part.caption)}**", "", *_short_table(part), ""]
        lines += [*_background(section)]
    lines += [*_left_out(audit, wording), *_provenance(audit, wording)]
    return {"report.md": "\n".join(lines)}


def _background(section: Section) -> Iterator[str]:
    """Yield a section's folded contents: limits of its numbers, and how they were computed."""
    methods = [(item.term, f"{item.text}{f' {item.reference}.' if item.reference else ''}") for item in section.methods]
    parts = {"What these numbers do not show": section.caveats, "How this was computed": methods}
    for title, content in parts.items():
        if content:
            yield from (f"**{title}**", "", *(f"- {_inline(f'{term}: {text}')}" for term, text in content), "")


def _provenance(audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield the provenance: plan, data, files, software and every setting."""
    plan, data, run = audit.plan, audit.data, audit.run
    yield from (f"## {wording.say('provenance')}", "")
    if plan is not None:
        followed = "The audit followed it." if plan["followed"] else "The audit did not follow it; what differs:"
        yield from (
            f"A plan was sealed on {_inline(plan['sealed'])}, SHA-256 `{_inline(plan['sha256'])}`. {followed}",
            "",
        )
        yield from (f"- {_inline(change['text'])}" for change in plan["changes"])
        yield ""
    yield f"- {'Answers' if 'people' in data else 'Data read'}, SHA-256: `{data['hash']}`"
    yield from (
        f"- {_inline(file['name'])}, SHA-256: `{file['sha256']}` ({file['bytes']:,} bytes)" for file in data["files"]
    )
    versions = {"evenhand": run["evenhand"], "Python": run["python"], **run["packages"]}
    yield f"- Software: {_inline(', '.join(f'{name} {version}' for name, version in versions.items()))}"
    yield f"- Run: {_inline(run['started'])}, {_inline(run['platform'])}"
    config = json.dumps(rounded(audit.config.as_dict()), indent=2, ensure_ascii=False)
    yield from ("", "Configuration, with every default:", "", "```json", *map(showable, config.splitlines()), "```", "")


def _front_page(audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield the front page: the facts, the answer in short, the groups compared, and every finding."""
    say, about = wording.say, audit.config.report
    answer = " ".join(short.answer(audit, short.wording_of_answer(audit, wording)))
    yield from (f"# {_inline(wording.title(about.title))}", "")
    yield from (f"- {_inline(term)}: {_inline(text)}" for term, text in page.facts(audit, wording))
    if about.scope:
        yield from ("", _inline(about.scope))
    yield from ("", f"## {say('in_short')}", "", _inline(answer), "")
    glance = front.at_a_glance(audit, wording)
    if glance:
        yield from (f"### {say('glance')}", "", *(_glance_line(line, wording) for line in glance), "")
    yield from _compared(audit, wording)
    yield from (f"## {say('findings')}", "")
    for first, *others in front.in_order(audit.findings):
        yield from _finding_lines(first, wording)
        for other in others:
            yield from (f"  {line}" for line in _finding_lines(other, wording))
    yield ""
    for sentence in audit.families:
        yield f"{_inline(wording.message(sentence))}\n"
    if wording.code != "en":
        yield f"{say('english')}\n"


def _compared(audit: Audit, wording: PageWording) -> Iterator[str]:
    compared = front.groups_compared(audit)
    if compared:
        yield from (f"### {wording.say('who')}", "", *(f"- {_inline(item.in_words(wording))}" for item in compared), "")
        hidden = audit.config.report.suppress_below is not None
        yield f"{' '.join(front.missing_data_sentences(compared, audit.data, wording, hidden=hidden))}\n"


def _glance_line(line: front.Glance, wording: PageWording) -> str:
    verdicts = ((wording.verdict(verdict), f"{name}: " if name else "") for name, verdict in line.verdicts)
    return (
        f"- {_inline(f'{line.what} ({line.limit})')}: {', '.join(f'{_inline(name)}{word}' for word, name in verdicts)}"
    )


def _finding_lines(finding: Finding, wording: PageWording) -> Iterator[str]:
    """Yield a finding, with untranslated parts below it in English."""
    verdict = ""
    if finding.threshold:
        verdict = f"**{wording.verdict(finding.verdict)}** ({_inline(wording.limit(finding))}): "
    sentences = [wording.headline(finding), wording.say("exploratory") if finding.exploratory else ""]
    if wording.code != "en" and finding.value is not None and not wording.translates(finding.detail):
        amount = wording.amount(finding)
        amount = wording.say("ratio", amount=amount) if finding.kind == "ratio" else amount
        sentences.append(f"({amount}; {wording.interval(finding)})")
    layers = (finding.detail, finding.reason)
    sentences += [wording.message(layer) for layer in layers if wording.translates(layer)]
    english = [wording.message(layer) for layer in layers if not wording.translates(layer)]
    yield f"- {verdict}{_inline(' '.join(filter(None, sentences)))}"
    if english:
        yield f"  - {_inline(' '.join(english))}"


def _left_out(audit: Audit, wording: PageWording) -> Iterator[str]:
    """Yield the people left out, and why."""
    records = page.left_out(audit)
    columns: dict[str, Callable[[Any], Cell]] = {
        "Grouping": lambda r: r["grouping"],
        "Group": lambda r: r["group"],
        "n": lambda r: Number(r["n"], "count"),
        "Model": lambda r: ", ".join(r["models"]) or None,
        "Why": lambda r: wording.message(r["reason"]),
    }
    yield from (f"## {wording.say('left_out')}", "")
    if records:
        yield from (*_short_table(make_table("Left out", columns, records)), "")
    else:
        yield from ("Nothing.", "")


def _short_table(table: DisplayTable) -> Iterator[str]:
    shown = DisplayTable(table.caption, table.columns, table.rows[:_MOST_ROWS])
    yield shown.to_markdown()
    hidden = len(table.rows) - len(shown.rows)
    if hidden > 0:
        yield f"\n{hidden:,} more rows are in `results.json`."


def _inline(text: str) -> str:
    return escape_markdown(showable(text))
