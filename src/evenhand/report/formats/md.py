"""The report as Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evenhand.core.display import Cell, DisplayTable, Number, escape_markdown, make_table
from evenhand.core.findings import Finding
from evenhand.messages import showable
from evenhand.messages.formats import rounded
from evenhand.report import front, page
from evenhand.report.answer import answer
from evenhand.report.formats import Files
from evenhand.report.wording import PageWording

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

_MOST_ROWS = 40


def make(audit: Audit) -> Files:
    """Return the whole report as one Markdown file."""
    wording, compared = page.wording_of(audit), front.groups_compared(audit)
    hidden = audit.config.report.suppress_below is not None
    config = json.dumps(rounded(audit.config.as_dict()), indent=2, ensure_ascii=False)
    versions = {"evenhand": audit.run["evenhand"], "Python": audit.run["python"], **audit.run["packages"]}
    environment = page.templates(autoescape=False, keep_trailing_newline=True)
    environment.filters["md"] = _inline
    text = environment.get_template("report.md").render(
        audit=audit,
        wording=wording,
        facts=page.facts(audit, wording),
        answer=answer(audit, wording),
        glance=front.at_a_glance(audit, wording),
        compared=compared,
        missing=" ".join(front.missing_data_sentences(compared, audit.data, wording, hidden=hidden)),
        ordered=front.in_order(audit.findings),
        texts=lambda finding: _texts(finding, wording),
        sections=audit.sections().values(),
        short_table=_short_table,
        left_out=_left_out(audit, wording),
        plan=audit.plan,
        data=audit.data,
        run=audit.run,
        software=", ".join(f"{name} {version}" for name, version in versions.items()),
        config="\n".join(map(showable, config.splitlines())),
    )
    return {"report.md": text}


def _texts(finding: Finding, wording: PageWording) -> tuple[str, str]:
    """Return the sentences on a finding, and the parts without a translation in English."""
    sentences = [wording.headline(finding), wording.say("exploratory") if finding.exploratory else ""]
    if wording.code != "en" and finding.value is not None and not wording.translates(finding.detail):
        amount = wording.amount(finding)
        amount = wording.say("ratio", amount=amount) if finding.kind == "ratio" else amount
        sentences.append(f"({amount}; {wording.interval(finding)})")
    layers = (finding.detail, finding.reason)
    sentences += [wording.message(layer) for layer in layers if wording.translates(layer)]
    english = [wording.message(layer) for layer in layers if not wording.translates(layer)]
    return " ".join(filter(None, sentences)), " ".join(english)


def _left_out(audit: Audit, wording: PageWording) -> str:
    """Return the table of the people left out, with reasons."""
    records = page.left_out(audit)
    columns: dict[str, Callable[[Any], Cell]] = {
        "Grouping": lambda r: r["grouping"],
        "Group": lambda r: r["group"],
        "n": lambda r: Number(r["n"], "count"),
        "Model": lambda r: ", ".join(r["models"]) or None,
        "Why": lambda r: wording.message(r["reason"]),
    }
    return _short_table(make_table("Left out", columns, records)) if records else "Nothing."


def _short_table(table: DisplayTable) -> str:
    hidden = len(table.rows) - _MOST_ROWS
    more = f"\n\n{hidden:,} more rows are in `results.json`." if hidden > 0 else ""
    return DisplayTable(table.caption, table.columns, table.rows[:_MOST_ROWS]).to_markdown() + more


def _inline(text: str) -> str:
    return escape_markdown(showable(text))
