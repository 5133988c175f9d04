"""Model cards and a datasheet, in Markdown and JSON, with what an audit knows; the rest is left to be filled in.

The fields are those of Mitchell et al. 2019 (Model cards for model reporting, FAT*) and of Gebru et al. 2021
(Datasheets for datasets, CACM 64(12)); the head of a card is that of the Hugging Face Hub.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from evenhand.core.display import Section, in_markdown
from evenhand.core.findings import VERDICT_WORDS, Finding
from evenhand.core.records import OVERALL, LeftOut, Value
from evenhand.messages import showable
from evenhand.messages.formats import json_text, rounded
from evenhand.report import front
from evenhand.report.page import slug

if TYPE_CHECKING:
    from evenhand.report.audit import Audit

OPEN = "To be filled in: an audit does not know it."


def model_cards(audit: Audit) -> dict[str, str | bytes]:
    """Return a card for every model, as Markdown with the head of the Hugging Face Hub and as JSON."""
    models = dict.fromkeys(finding.model for finding in audit.findings if finding.model is not None)
    files: dict[str, str | bytes] = {}
    for model in models:
        card = _card(audit, model)
        name = f"model-card-{slug(model)}"
        files[f"{name}.md"] = _hub_head(audit, model) + _as_markdown(f"Model card: {model}", card)
        files[f"{name}.json"] = json_text(card)
    return files


def _card(audit: Audit, model: str) -> dict[str, dict[str, Any]]:
    about, data = audit.config.report, audit.config.data
    findings = [finding for finding in audit.findings if finding.model == model]
    prediction = data.get("predictions", {}).get(model, {})
    sections = {name: result.section() for name, result in audit.results.items()}
    return {
        "model_details": {"name": model, "overview": about.system or OPEN, "owners": OPEN, "version": OPEN},
        "intended_use": {"primary_uses": OPEN, "out_of_scope_uses": OPEN},
        "factors": {
            "groups_compared": [f"{item.grouping}: {_sizes(item)}" for item in front.who_was_compared(audit)],
            "selected_means": _selected(prediction),
        },
        "metrics": {
            "audits": [f"{name}: {section.question}" for name, section in sections.items()],
            "thresholds": [_judged(audit, finding) for finding in findings if finding.threshold],
            "thresholds_set_by": about.thresholds_by or OPEN,
        },
        "evaluation_data": {
            "source": _source(audit),
            "rows": f"{audit.data['rows_used']:,} of {audit.data['rows']:,}",
            "sha256": audit.data["hash"],
        },
        "training_data": {"description": OPEN},
        "quantitative_analyses": {"findings": [finding.text for finding in findings], "values": _values(audit, model)},
        "ethical_considerations": {"description": OPEN},
        "caveats_and_recommendations": {"what_the_numbers_do_not_show": _caveats(sections.values())},
    }


def _source(audit: Audit) -> str | list[str]:
    """Return where the data came from: the files with their sums, or the source that the settings name."""
    files = [f"{file['name']} (SHA-256 {file['sha256']})" for file in audit.data["files"]]
    return (files if len(files) > 1 else files[0]) if files else audit.config.source or "given in memory"


def _judged(audit: Audit, finding: Finding) -> str:
    """Return a limit and its verdict, with the place that was judged."""
    metric = audit.results[finding.audit].metrics[finding.metric].title_in_sentence
    parts = {"by": finding.grouping, "within": finding.stratum}
    where = "".join(f" {word} {part}" for word, part in parts.items() if part)
    return f"{finding.model}, {metric}{where}, {finding.threshold}: {VERDICT_WORDS[finding.verdict]}"


def _caveats(sections: Iterable[Section]) -> list[str]:
    return list(dict.fromkeys(caveat for section in sections for _, caveat in section.caveats))


def _sizes(item: front.Compared) -> str:
    missing = f", not known {item.missing:,}" if item.missing else ""
    few = {group: " (too few to compare)" for group, n in item.sizes if n < item.least}
    return ", ".join(f"{group} {n:,}{few.get(group, '')}" for group, n in item.sizes) + missing


_MISSING = {
    "error": "no outcome or score is missing: the audit would have stopped",
    "drop": "rows with a missing outcome or score are left out",
}


def _selected(prediction: Mapping[str, Any]) -> str:
    if not prediction:
        return OPEN
    good = {"selected": "good for the person", "not_selected": "bad for the person"}
    side = good.get(prediction.get("favourable") or "", "whether that is good for a person is not said")
    above = f"score above {prediction['threshold']:g}" if prediction.get("kind") == "score" else "decision"
    return f"{above}; {side}"


def _values(audit: Audit, model: str) -> list[dict[str, Any]]:
    """Return the values by group, single and intersecting, with their intervals."""
    kept = ("grouping", "group", "metric", "n", "value", "low", "high")
    return [
        {name: rounded(getattr(record, name)) for name in kept} | {"title": result.metrics[record.metric].title}
        for result in audit.results.values()
        for record in result.tables.get("values", ())
        if isinstance(record, Value) and record.model == model and record.stratum is None and record.value is not None
    ]


def _hub_head(audit: Audit, model: str) -> str:
    """Return the metadata of the Hugging Face Hub: what was measured for everybody, as results of the model."""
    overall = [
        {"type": record["metric"], "value": record["value"], "name": record["title"]}
        for record in _values(audit, model)
        if record["group"] == OVERALL
    ]
    dataset = {"name": audit.config.report.title, "type": "tabular"}
    results = [{"task": {"type": "tabular-classification"}, "dataset": dataset, "metrics": overall}]
    head = {
        "library_name": "evenhand",
        "tags": ["fairness", "evenhand", *audit.results],
        **({"model-index": [{"name": model, "results": results}]} if overall else {}),
    }
    # JSON is YAML, and quotes whatever a name may hold.
    lines = [f"{key}: {json.dumps(value)}" for key, value in head.items()]
    return "\n".join(["---", *lines, "---", "", ""])


def datasheet(audit: Audit) -> dict[str, str | bytes]:
    """Return what is known of the data, by the questions of a datasheet."""
    data, about = audit.config.data, audit.config.report
    left_out = [record for result in audit.results.values() for record in result.left_out]
    sheet: dict[str, dict[str, Any]] = {
        "motivation": {"purpose": about.scope or OPEN, "creators": OPEN},
        "composition": {
            "instances": f"{audit.data['rows']:,} rows, of which {audit.data['rows_used']:,} are used",
            "groups": [f"{item.grouping}: {_sizes(item)}" for item in front.who_was_compared(audit)],
            "outcome": data.get("outcome") or "none",
            "predictions": [f"{name}: {_selected(value)}" for name, value in data.get("predictions", {}).items()],
            "files": [f"{file['name']}, SHA-256 {file['sha256']}" for file in audit.data["files"]],
            "sha256_of_what_was_read": audit.data["hash"],
        },
        "collection": {"process": OPEN, "consent": OPEN},
        "preprocessing": {
            "missing_values": _MISSING.get(data.get("missing", "error"), OPEN),
            "cut_points": [f"{column}: {cuts}" for column, cuts in data.get("cuts", {}).items()] or "none",
            "left_out": list(dict.fromkeys(_left_out(record) for record in left_out)) or "nothing",
        },
        "uses": {"used_for": f"a fairness audit with evenhand: {', '.join(audit.results)}", "other_uses": OPEN},
        "distribution": {"description": OPEN},
        "maintenance": {"description": OPEN},
    }
    title = f"Datasheet: {about.title}"
    return {"datasheet.md": _as_markdown(title, sheet), "datasheet.json": json_text(sheet)}


def _left_out(record: LeftOut) -> str:
    who = f"{record.grouping} {record.group}, " if record.group is not None else ""
    return f"{who}n = {record.n:,}: {record.reason}"


def _as_markdown(title: str, card: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [f"# {in_markdown(showable(title))}", ""]
    for heading, entries in card.items():
        lines += [f"## {heading.replace('_', ' ').capitalize()}", ""]
        for name, value in entries.items():
            lines += [*_entry(name.replace("_", " ").capitalize(), value), ""]
    return "\n".join(lines)


def _entry(name: str, value: str | list[Any]) -> list[str]:
    if isinstance(value, str):
        return [f"**{name}.** {in_markdown(showable(value))}"]
    if value and isinstance(value[0], dict):
        columns = [column for column in value[0] if column != "title"]
        rows = [[_cell(entry["title" if column == "metric" else column]) for column in columns] for entry in value]
        return [f"**{name}**", "", *("| " + " | ".join(row) + " |" for row in (columns, ["---"] * len(columns), *rows))]
    return [f"**{name}**", "", *(f"- {in_markdown(showable(str(item)))}" for item in value)]


def _cell(value: object) -> str:
    return "–" if value is None else in_markdown(showable(f"{value:.4g}" if isinstance(value, float) else str(value)))
