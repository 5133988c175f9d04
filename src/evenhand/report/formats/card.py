"""Model cards in Markdown and JSON, filled in from an audit as far as possible.

The fields follow Mitchell et al. 2019 (Model cards for model reporting, FAT*), and the metadata header follows the
Hugging Face Hub.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from evenhand.core.display import Section
from evenhand.core.findings import Finding
from evenhand.core.records import OVERALL, Value
from evenhand.messages.formats import json_text, rounded
from evenhand.report import front
from evenhand.report.formats import Files
from evenhand.report.formats._documents import OPEN, group_sizes, selection_meaning, to_markdown
from evenhand.report.page import slug

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def make(audit: Audit) -> Files:
    """Return a card for every model, as Markdown with Hugging Face metadata and as JSON."""
    models = dict.fromkeys(finding.model for finding in audit.findings if finding.model is not None)
    files: Files = {}
    for model in models:
        card = _card(audit, model)
        name = f"model-card-{slug(model)}"
        files[f"{name}.md"] = _hub_head(audit, model) + to_markdown(f"Model card: {model}", card)
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
            "groups_compared": [f"{item.grouping}: {group_sizes(item)}" for item in front.groups_compared(audit)],
            "selected_means": selection_meaning(prediction),
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
    """Return the source of the data: files with their checksums, or the source in the settings."""
    files = [f"{file['name']} (SHA-256 {file['sha256']})" for file in audit.data["files"]]
    return (files if len(files) > 1 else files[0]) if files else audit.config.source or "given in memory"


def _judged(audit: Audit, finding: Finding) -> str:
    """Return a limit and its verdict, with the coordinates of the judged value."""
    metric = audit.results[finding.audit].metrics[finding.metric].title_in_sentence
    parts = {"by": finding.grouping, "within": finding.stratum}
    where = "".join(f" {word} {part}" for word, part in parts.items() if part)
    return f"{finding.model}, {metric}{where}, {finding.threshold}: {finding.judgement}"


def _caveats(sections: Iterable[Section]) -> list[str]:
    return list(dict.fromkeys(caveat for section in sections for _, caveat in section.caveats))


def _values(audit: Audit, model: str) -> list[dict[str, Any]]:
    """Return the values by group and by intersection of groups, with their intervals."""
    columns = ("grouping", "group", "metric", "n", "value", "low", "high")
    return [
        {name: rounded(getattr(record, name)) for name in columns} | {"title": result.metrics[record.metric].title}
        for result in audit.results.values()
        for record in result.tables.get("values", ())
        if isinstance(record, Value) and record.model == model and record.stratum is None and record.value is not None
    ]


def _hub_head(audit: Audit, model: str) -> str:
    """Return the Hugging Face metadata, with the values of all people as the model's results."""
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
    # JSON is YAML, and quotes any name.
    lines = [f"{key}: {json.dumps(value)}" for key, value in head.items()]
    return "\n".join(["---", *lines, "---", "", ""])
