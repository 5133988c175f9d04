"""The front page below the answer in short: verdicts at a glance, who was compared, findings from the clearest down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from evenhand.core.findings import Finding
from evenhand.core.records import limits_to_judge
from evenhand.core.thresholds import VERDICTS, Verdict, is_least
from evenhand.report.wording import PageWording, wording
from evenhand.table.roles import MISSING

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

MOST_GROUPS = 12
_WIDTH, _HEIGHT = 240, 26
_LEFT, _RIGHT = 8, 232
_DIGITS = 9
"""Of what findings are ranked by: beyond them processors differ, and so would the order."""


@dataclass(frozen=True)
class Line:
    """One finding on the front page: its picture, and those that say the same of other models or groups."""

    finding: Finding
    picture: Markup
    others: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Compared:
    """The groups of one grouping with their sizes, the largest first, and below how many people none is compared."""

    grouping: str
    sizes: tuple[tuple[str, int], ...]
    missing: int
    least: int = 0

    def in_words(self, spoken: PageWording, most: int = MOST_GROUPS) -> str:
        """Return the groups with their sizes in a line; of many groups, the largest."""
        told = [f"{spoken.label(group)} {self.size(n, spoken)}" for group, n in self.sizes[:most]]
        told += [spoken.say("more_groups", number=len(self.sizes) - most)] if len(self.sizes) > most else []
        told += [f"{spoken.say('not_known')} {spoken.count(self.missing)}"] if self.missing else []
        return f"{self.grouping}: {' · '.join(told)}"

    def size(self, people: int, spoken: PageWording) -> str:
        """Return how many people a group has, and whether they are too few to be compared."""
        few = "" if people >= self.least else f" ({spoken.say('too_few')})"
        return f"{spoken.count(people)}{few}"


def rank(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings from the clearest down: not met, undecided, met, then those without a threshold.

    Not met and met: by the distance of the interval from the limit, in units of its width. Undecided: those that lie
    nearest to the limit first. Without a threshold: by p-value, then by how far the interval lies from no difference.
    """
    return sorted(findings, key=_order)


def in_order(findings: Iterable[Finding]) -> list[tuple[Finding, ...]]:
    """Return findings in the one order of terminal, page and files: as ranked, each with those like it behind it.

    Alike are findings without a threshold that say the same of other models or groups; a verdict stands for itself.
    """
    same: dict[object, list[Finding]] = {}
    for finding in rank(findings):
        same.setdefault(alike(finding) if finding.threshold is None else id(finding), []).append(finding)
    return [tuple(findings) for findings in same.values()]


def _order(finding: Finding) -> tuple[float, ...]:
    place = float(VERDICTS.index(finding.verdict))
    if finding.verdict == "no_threshold":
        p_value = finding.p_adjusted if finding.p_adjusted is not None else finding.p_value
        clearance = round(_clearance(finding, _no_gap(finding)), _DIGITS)
        return place, finding.value is None, 1.0 if p_value is None else round(p_value, _DIGITS), -clearance
    if finding.limit is None or finding.value is None:
        return place, 1.0
    clearance = round(min(_clearance(finding, limit) for limit in _limits(finding)), _DIGITS)
    return place, 0.0, clearance if finding.verdict == "insufficient_evidence" else -clearance


def _no_gap(finding: Finding) -> float:
    return 1.0 if finding.kind == "ratio" else 0.0


def _limits(finding: Finding) -> tuple[float, ...]:
    """Return the limit on either side of no gap: a gap may point either way."""
    if finding.limit is None:
        return (_no_gap(finding),) if finding.kind else ()
    if finding.kind == "ratio":
        return (finding.limit, 1 / finding.limit) if finding.limit else (finding.limit,)
    return (finding.limit, -finding.limit) if finding.kind else (finding.limit,)


def _clearance(finding: Finding, limit: float) -> float:
    """Return how far the interval lies from a limit, in widths of the interval; inside it, how far the value does."""
    low, high = limits_to_judge(finding)
    if finding.value is None:
        return 0.0
    ends = [end for end in (low, high) if end is not None] or [finding.value]
    width = max(ends) - min(ends) or 1e-9
    if min(ends) <= limit <= max(ends):
        return abs(finding.value - limit) / width
    return min(abs(end - limit) for end in ends) / width


def alike(finding: Finding) -> tuple[object, ...]:
    """Return what findings share that say the same thing of different models or groups."""
    return finding.audit, finding.metric, finding.grouping, finding.kind, finding.against, finding.threshold


def who_was_compared(audit: Audit) -> list[Compared]:
    """Return the groups of every grouping with the number of their people in the data."""
    least = min((getattr(result.spec, "min_count", 0) for result in audit.results.values()), default=0)
    return [
        Compared(
            grouping,
            tuple(sorted(((g, n) for g, n in groups.items() if g != MISSING), key=lambda pair: (-pair[1], pair[0]))),
            groups.get(MISSING, 0),
            least,
        )
        for grouping, groups in audit.data.get("groups", {}).items()
    ]


def who_is_missing(
    compared: Sequence[Compared], data: Mapping[str, Any], spoken: PageWording, *, hidden: bool = False
) -> list[str]:
    """Say that nobody's group is missing, where that is so, and how many rows were left out.

    Where small counts are hidden, people whose group is missing may be among them.
    """
    known = [] if hidden or any(item.missing for item in compared) else [spoken.say("all_known")]
    if not data["rows_dropped"]:
        return [*known, spoken.say("nobody")]
    dropped, rows = (spoken.count(data[name]) for name in ("rows_dropped", "rows"))
    return [*known, spoken.say("rows_left_out", dropped=dropped, rows=rows)]


LEAST_AT_A_GLANCE = 4
"""Verdicts below which a list says as much as an overview of it."""


@dataclass(frozen=True)
class Glance:
    """One threshold with the verdict on each model, "" where it is on none; of several, the least good one."""

    what: str
    limit: str
    verdicts: tuple[tuple[str, Verdict], ...]


def at_a_glance(audit: Audit, spoken: PageWording | None = None) -> list[Glance]:
    """Return every threshold once, with its verdicts: what aequitas shows as a table of groups."""
    spoken = spoken or wording()
    rows: dict[tuple[object, ...], dict[str, Finding]] = {}
    judged = [finding for finding in audit.findings if finding.threshold is not None]
    for finding in sorted(judged, key=lambda finding: VERDICTS.index(finding.verdict)):
        rows.setdefault(alike(finding), {}).setdefault(finding.model or "", finding)
    if len(judged) < LEAST_AT_A_GLANCE:
        return []
    lines = []
    for found in rows.values():
        first = next(iter(found.values()))
        lines.append(
            Glance(
                _what_is_limited(audit, first, spoken),
                spoken.limit(first),
                tuple((model, one.verdict) for model, one in found.items()),
            )
        )
    return lines


def _what_is_limited(audit: Audit, finding: Finding, spoken: PageWording) -> str:
    known = audit.results[finding.audit].spec.known_metrics()
    title = spoken.metric_title(known[finding.metric])
    return spoken.say("of_grouping", title=title, grouping=finding.grouping) if finding.grouping else title


def lines(findings: Iterable[Finding], spoken: PageWording | None = None) -> list[Line]:
    """Return a line for each thing that findings say: the clearest, with those like it behind; they share axes."""
    told = list(findings)
    return [Line(first, _picture(first, told, spoken or wording()), tuple(rest)) for first, *rest in in_order(told)]


# The small picture of an interval ------------------------------------------------------------------------------------


def _picture(finding: Finding, all_findings: Sequence[Finding], spoken: PageWording) -> Markup:
    """Return the interval as a bar with its value, against the limit; findings of one unit share an axis.

    The style sheet has the colours; those here are for a printer that does not read it for pictures.
    """
    low, high = limits_to_judge(finding)
    if finding.value is None:
        return Markup("")
    start, end = _axis(finding, all_findings)

    def x(number: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * min(max((number - start) / (end - start), 0), 1), 1)

    middle = _HEIGHT / 2
    parts = [
        *_beyond(finding, x),
        f'<line class="axis" stroke="#d5d9df" x1="{_LEFT}" x2="{_RIGHT}" y1="{middle}" y2="{middle}"/>',
    ]
    if low is not None or high is not None:
        left, right = x(start if low is None else low), x(end if high is None else high)
        parts.append(
            f'<rect class="bar" fill="#0a5ea8" opacity=".35" x="{left}" y="{middle - 5}" '
            f'width="{max(right - left, 1.5):.1f}" height="10" rx="3"/>'
        )
    parts.append(f'<circle class="dot" fill="#0a5ea8" cx="{x(finding.value)}" cy="{middle}" r="4"/>')
    kind = "none" if finding.limit is None else "limit"
    parts += [
        f'<line class="{kind}" stroke="#1c2128" x1="{x(limit)}" x2="{x(limit)}" y1="2" y2="{_HEIGHT - 2}"/>'
        for limit in _limits(finding)
        if start <= limit <= end
    ]
    return Markup(  # noqa: S704 (numbers are ours, the title is escaped)
        f'<svg class="strip" role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}">'
        f"<title>{escape(_in_words(finding, spoken))}</title>{''.join(parts)}</svg>"
    )


def _beyond(finding: Finding, x: Callable[[float], float]) -> Iterator[str]:
    """Yield the side of the axis where a threshold is not met, shaded."""
    if finding.limit is None or finding.threshold is None or finding.value is None:
        return
    least = is_least(finding.threshold)
    left, right = (_LEFT, x(finding.limit)) if least else (x(finding.limit), _RIGHT)
    if not least and finding.kind and finding.value < 0:  # the gap points the other way
        left, right = _LEFT, x(-finding.limit)
    if right > left:
        yield (
            f'<rect class="beyond" fill="#a3190f" opacity=".1" x="{left}" y="3" width="{right - left:.1f}" '
            f'height="{_HEIGHT - 6}"/>'
        )


def _in_words(finding: Finding, spoken: PageWording) -> str:
    words = {"amount": spoken.amount(finding), "interval": spoken.interval(finding), "limit": spoken.limit(finding)}
    return spoken.say("picture_limit" if finding.threshold else "picture", **words)


def _axis(finding: Finding, all_findings: Sequence[Finding]) -> tuple[float, float]:
    """Return the ends of the axis that all findings of this unit and kind share; it holds 0, and 1 for a ratio."""
    numbers = [0.0, _no_gap(finding)]
    for other in all_findings:
        if (other.unit, other.kind) == (finding.unit, finding.kind):
            numbers += [n for n in (other.value, *limits_to_judge(other), other.limit) if n is not None]
    return min(numbers), max(numbers) if max(numbers) > min(numbers) else min(numbers) + 1
