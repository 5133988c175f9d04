"""The metrics of paired tests: each is a mean over templates of the mean of a template's answers."""

from __future__ import annotations

from math import inf

from evenhand.core.metrics import Metric, gap_limits

_BERTRAND = (
    "M. Bertrand and S. Mullainathan (2004), Are Emily and Greg more employable than Lakisha and Jamal?, American "
    "Economic Review 94"
)
_SAME = "It holds for templates like these and for the people as the templates name them, no more."

METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            name="pass_rate",
            title="Pass rate",
            unit="share",
            formula="mean over templates of the share of answers that pass, refusals left out",
            reference=_BERTRAND,
            caveat=_SAME,
            headline=True,
            limits=gap_limits(),
        ),
        Metric(
            name="mean_answer",
            title="Mean answer",
            unit="amount",
            formula="mean over templates of the mean answer, refusals left out",
            reference=_BERTRAND,
            caveat=_SAME,
            headline=True,
            reveals="number",
            limits=gap_limits(most=inf),
        ),
        Metric(
            name="refusal_rate",
            title="Refusal rate",
            unit="share",
            formula="mean over templates of the share of answers that are refusals",
            reference=_BERTRAND,
            caveat="A refusal can protect a person or exclude one; the number does not say which. " + _SAME,
            headline=True,
            limits=gap_limits(),
        ),
    )
}
"""The metrics by name."""
