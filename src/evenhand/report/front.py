"""The front page below the answer: verdicts at a glance, compared groups, and ranked findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from evenhand.charts.look import FONT
from evenhand.core.findings import Finding
from evenhand.core.records import STANDARDISED, limits_to_judge
from evenhand.core.thresholds import UNDECIDED, VERDICTS, is_least
from evenhand.messages.formats import show
from evenhand.report.wording import PageWording, page_wording
from evenhand.table.roles import MISSING, TIMES

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

MOST_GROUPS = 12
_WIDTH, _HEIGHT = 240, 26
_LEFT, _RIGHT = 8, 232
_LETTER = 7.5
"""The approximate width of a digit at an axis, in pixels."""
_DIGITS = 9
"""The digits used to rank findings; further digits, and so the order, depend on the processor."""


@dataclass(frozen=True)
class FrontLine:
    """One finding on the front page, with its chart and the equivalent findings of other models or groups."""

    finding: Finding
    picture: Markup
    others: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Compared:
    """The groups of one grouping with their sizes, largest first, and the minimum size for a comparison."""

    grouping: str
    sizes: tuple[tuple[str, int], ...]
    missing: int
    least: int = 0

    @property
    def people(self) -> int:
        """The number of people, including people with a missing group."""
        return self.missing + sum(n for _, n in self.sizes)

    def in_words(self, wording: PageWording, most: int = MOST_GROUPS) -> str:
        """Return the groups with their sizes in one line; of many groups, only the largest."""
        sizes = [f"{wording.label(group)} {self.size(n, wording)}" for group, n in self.sizes[:most]]
        sizes += [wording.say("more_groups", number=len(self.sizes) - most)] if len(self.sizes) > most else []
        sizes += [f"{wording.say('not_known')} {wording.count(self.missing)}"] if self.missing else []
        return f"{self.grouping}: {' · '.join(sizes)}"

    def size(self, people: int, wording: PageWording) -> str:
        """Return a group's size, marked if it is too small to be compared."""
        few = "" if people >= self.least else f" ({wording.say('too_few')})"
        return f"{wording.count(people)}{few}"


def rank(findings: Iterable[Finding]) -> list[Finding]:
    """Rank findings by verdict (not met, undecided, met, no threshold), and then by clarity.

    Among findings with a limit, shares come before mean scores and other numbers. Met and violated limits are sorted
    by the interval's distance from the limit, in units of its width; undecided limits by the same distance, nearest
    first. Findings without a threshold are sorted by p-value, and then by the interval's distance from no difference.
    """
    return sorted(findings, key=_order)


def in_order(findings: Iterable[Finding]) -> list[tuple[Finding, ...]]:
    """Return findings in the order of terminal, page and files: ranked, with equivalent findings together.

    Equivalent findings have no threshold and state the same about other models or groups, in the same direction.
    Findings with a verdict are listed separately.
    """
    same: dict[object, list[Finding]] = {}
    for finding in rank(findings):
        alike = (*comparison_key(finding), finding.arguments.get("worse_off"))
        same.setdefault(alike if finding.threshold is None else id(finding), []).append(finding)
    return [tuple(findings) for findings in same.values()]


def numbers_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the numbers of findings in order, such as F2 and F10."""
    return tuple(sorted((finding.number for finding in findings), key=lambda number: (len(number), number)))


def _order(finding: Finding) -> tuple[float, ...]:
    rank_of_verdict = float(VERDICTS.index(finding.verdict))
    if finding.verdict == "no_threshold":
        p_value = finding.p_adjusted if finding.p_adjusted is not None else finding.p_value
        clearance = round(_clearance(finding, _no_gap(finding)), _DIGITS)
        return rank_of_verdict, finding.value is None, 1.0 if p_value is None else round(p_value, _DIGITS), -clearance
    if finding.limit is None or finding.value is None:
        return rank_of_verdict, 1.0
    clearance = round(min(_clearance(finding, limit) for limit in _limits(finding)), _DIGITS)
    return rank_of_verdict, 0.0, finding.unit != "share", clearance if finding.verdict in UNDECIDED else -clearance


def _no_gap(finding: Finding) -> float:
    return 1.0 if finding.kind == "ratio" else 0.0


def _limits(finding: Finding) -> tuple[float, ...]:
    """Return the limits on both sides of no difference, because a gap may have either direction."""
    if finding.limit is None:
        return (_no_gap(finding),) if finding.kind else ()
    if finding.kind == "ratio":
        return (finding.limit, 1 / finding.limit) if finding.limit else (finding.limit,)
    return (finding.limit, -finding.limit) if finding.kind else (finding.limit,)


def _clearance(finding: Finding, limit: float) -> float:
    """Return the interval's distance from a limit, in units of the interval's width.

    If the interval contains the limit, return the value's distance.
    """
    low, high = limits_to_judge(finding)
    if finding.value is None:
        return 0.0
    ends = [end for end in (low, high) if end is not None] or [finding.value]
    width = max(ends) - min(ends) or 1e-9
    if min(ends) <= limit <= max(ends):
        return abs(finding.value - limit) / width
    return min(abs(end - limit) for end in ends) / width


def comparison_key(finding: Finding) -> tuple[object, ...]:
    """Return a key shared by findings that state the same about different models or groups."""
    place = finding.audit, finding.metric, finding.grouping, finding.stratum
    return *place, finding.kind, finding.against, finding.threshold


def groups_compared(audit: Audit) -> list[Compared]:
    """Return the groups of every grouping, with their numbers of people in the data."""
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


def missing_data_sentences(
    compared: Sequence[Compared], data: Mapping[str, Any], wording: PageWording, *, hidden: bool = False
) -> list[str]:
    """Return sentences on the number of rows left out, and on missing groups if there are none.

    With hidden small counts, the second sentence is omitted, because hidden people may have a missing group.
    """
    complete = [] if hidden or any(item.missing for item in compared) else [wording.say("all_known")]
    if not data["rows_dropped"]:
        return [*complete, wording.say("nobody")]
    dropped, rows = (wording.count(data[name]) for name in ("rows_dropped", "rows"))
    return [*complete, wording.say("rows_left_out", dropped=dropped, rows=rows)]


LEAST_AT_A_GLANCE = 2
"""The number of verdicts below which an overview would add nothing to the answer."""


@dataclass(frozen=True)
class Glance:
    """One threshold with the finding of the worst verdict for each model ("" without a model)."""

    what: str
    limit: str
    verdicts: tuple[tuple[str, Finding], ...]

    @property
    def by_model(self) -> dict[str, Finding]:
        """The verdicts by model."""
        return dict(self.verdicts)

    def note(self, _wording: PageWording) -> str:
        """Return the text beside the quantity: its limit."""
        return self.limit


def at_a_glance(audit: Audit, wording: PageWording | None = None) -> list[Glance]:
    """Return every threshold once, with its verdicts by model."""
    wording = wording or page_wording()
    rows: dict[tuple[object, ...], dict[str, Finding]] = {}
    judged = [finding for finding in audit.findings if finding.threshold is not None]
    for finding in sorted(judged, key=lambda finding: VERDICTS.index(finding.verdict)):
        rows.setdefault(comparison_key(finding), {}).setdefault(finding.model or "", finding)
    if len(judged) < LEAST_AT_A_GLANCE:
        return []
    lines = []
    for findings_by_model in rows.values():
        first = next(iter(findings_by_model.values()))
        lines.append(
            Glance(
                limited_quantity(audit, first, wording),
                wording.limit(first),
                tuple(findings_by_model.items()),
            )
        )
    return lines


@dataclass(frozen=True)
class Established:
    """Significant differences without a limit in one metric and grouping, with a finding for each model."""

    what: str
    findings: tuple[Finding, ...]

    @property
    def by_model(self) -> dict[str, Finding]:
        """The findings by model."""
        return {finding.model or "": finding for finding in self.findings}

    def note(self, wording: PageWording) -> str:
        """Return the text beside the quantity: the unit if it is percentage points, else empty."""
        return wording.say("in_points") if self.findings[0].style == "points" else ""


def established(audit: Audit, wording: PageWording | None = None) -> list[Established]:
    """Return the established differences in values that no limit judges.

    Shares come before other numbers, such as mean scores, and larger differences before smaller ones.
    """
    wording = wording or page_wording()
    judged = {place_of(finding) for finding in audit.findings if finding.threshold is not None}
    rows: dict[str, list[Finding]] = {}
    for finding in audit.findings:
        if is_established(finding) and place_of(finding) not in judged:
            rows.setdefault(limited_quantity(audit, finding, wording), []).append(finding)
    lines = [Established(what, tuple(sorted(found, key=lambda f: f.model or ""))) for what, found in rows.items()]
    return sorted(lines, key=lambda line: (line.findings[0].unit != "share", -max(map(distance, line.findings))))


def distance(finding: Finding) -> float:
    """Return the distance of a gap from equality, on one scale for differences and ratios."""
    value = finding.value or 0.0
    return abs(1.0 - value) if finding.kind == "ratio" else abs(value)


def is_established(finding: Finding) -> bool:
    """Return whether groups differ significantly, adjusted for all tests of the run."""
    return finding.kind is not None and finding.significance in ("directed", "significant")


def leaves_pair_open(finding: Finding) -> bool:
    """Return whether a finding establishes that some groups differ, but not which ones."""
    return is_established(finding) and finding.significance == "significant" and finding.against == "worst_pair"


def place_of(finding: Finding) -> tuple[object, ...]:
    """Return the key of a finding's comparison, without its limit."""
    return finding.audit, finding.model, finding.grouping, finding.stratum, finding.metric


def limited_quantity(audit: Audit, finding: Finding, wording: PageWording, *, in_sentence: bool = False) -> str:
    """Return what a limit is about, such as "Selection rate, by race"."""
    spec = audit.results[finding.audit].spec
    metric = spec.known_metrics()[finding.metric]
    title = wording.metric(metric.title_in_sentence) if in_sentence else wording.metric_title(metric)
    what = wording.say("of_grouping", title=title, grouping=finding.grouping) if finding.grouping else title
    if finding.stratum == STANDARDISED:
        return wording.say("standardised", title=what, factor=TIMES.join(getattr(spec, "within", ())))
    return f"{what}, {finding.stratum}" if finding.stratum else what


def lines(findings: Iterable[Finding], wording: PageWording | None = None) -> list[FrontLine]:
    """Return the lines of the front page: ranked findings with their equivalents, on shared axes."""
    all_findings = list(findings)
    return [
        FrontLine(first, _picture(first, all_findings, wording or page_wording()), tuple(rest))
        for first, *rest in in_order(all_findings)
    ]


# The small chart of an interval --------------------------------------------------------------------------------------


def picture_with_axis(finding: Finding, wording: PageWording) -> Markup:
    """Draw the interval of one finding, with numbers at the ends of its axis and a label at the limit line."""
    start, end = _axis(finding, [finding])
    limits = [limit for limit in _limits(finding) if start <= limit <= end]

    def short(number: float) -> str:
        return show(number, finding.style).removesuffix(".0").replace(".0%", "%")

    is_limit = finding.limit is not None and bool(limits)
    upright = wording.say("limit_here", limit=short(limits[0])) if is_limit else wording.say("no_difference")

    def text(x: float, y: int, words: str) -> str:
        room = _LETTER * len(words) / 2
        middle = min(max(x, room), _WIDTH - room)
        return f'<text x="{middle:.1f}" y="{y}" font-size="12" text-anchor="middle">{escape(words)}</text>'

    texts = [text(_x(limit, start, end), 10, upright) for limit in limits[:1]]
    texts += [text(_x(n, start, end), _HEIGHT + 24, wording.number(short(n))) for n in (start, end)]
    return _picture(finding, [finding], wording, "".join(texts))


def _picture(finding: Finding, all_findings: Sequence[Finding], wording: PageWording, texts: str = "") -> Markup:
    """Draw the interval as a bar with its value and limit; findings of the same unit share an axis.

    `texts` are SVG texts above and below the bar.

    The colours here are for print, which ignores the style sheet for images.
    """
    low, high = limits_to_judge(finding)
    if finding.value is None:
        return Markup("")
    start, end = _axis(finding, all_findings)

    def x(number: float) -> float:
        return _x(number, start, end)

    middle = _HEIGHT / 2
    parts = [
        *_beyond(finding, x),
        f'<line class="axis" stroke="#d5d9df" x1="{_LEFT}" x2="{_RIGHT}" y1="{middle}" y2="{middle}"/>',
    ]
    if low is not None or high is not None:
        left, right = x(start if low is None else low), x(end if high is None else high)
        parts.append(
            f'<rect class="bar" fill="#0a5ea8" x="{left}" y="{middle - 2}" '
            f'width="{max(right - left, 1.5):.1f}" height="4"/>'
        )
    parts += _whisker(finding, x)
    parts.append(f'<circle class="dot" fill="#0a5ea8" cx="{x(finding.value)}" cy="{middle}" r="5"/>')
    kind = "none" if finding.limit is None else "limit"
    parts += [
        f'<line class="{kind}" stroke="#1c2128" x1="{x(limit)}" x2="{x(limit)}" y1="2" y2="{_HEIGHT - 2}"/>'
        for limit in _limits(finding)
        if start <= limit <= end
    ]
    top, height = (-13, _HEIGHT + 28) if texts else (0, _HEIGHT)
    texts = f'<g class="ticks" font-family="{FONT}" transform="translate(0 -13)">{texts}</g>' if texts else ""
    return Markup(  # noqa: S704 (numbers are ours, texts are escaped)
        f'<svg class="strip" role="img" viewBox="0 {top} {_WIDTH} {height}" width="{_WIDTH}" height="{height}">'
        f"<title>{escape(_picture_title(finding, wording))}</title>{''.join(parts)}{texts}</svg>"
    )


def _x(number: float, start: float, end: float) -> float:
    """Return the x coordinate of a number on an axis."""
    return round(_LEFT + (_RIGHT - _LEFT) * min(max((number - start) / (end - start), 0), 1), 1)


def _whisker(finding: Finding, x: Callable[[float], float]) -> list[str]:
    """Return the simultaneous interval behind the verdict as a line with end marks, or nothing."""
    low, high = finding.decided_low, finding.decided_high
    if low is None or high is None:
        return []
    middle, ends = _HEIGHT / 2, f"M{x(low)} {_HEIGHT / 2 - 4}v8M{x(high)} {_HEIGHT / 2 - 4}v8"
    return [f'<path class="whisker" fill="none" stroke="#0a5ea8" d="M{x(low)} {middle}H{x(high)}{ends}"/>']


def _beyond(finding: Finding, x: Callable[[float], float]) -> Iterator[str]:
    """Yield the shading of the axis range that violates a threshold."""
    if finding.limit is None or finding.threshold is None or finding.value is None:
        return
    least = is_least(finding.threshold)
    left, right = (_LEFT, x(finding.limit)) if least else (x(finding.limit), _RIGHT)
    if not least and finding.kind and finding.value < 0:  # the gap has the opposite direction
        left, right = _LEFT, x(-finding.limit)
    if right > left:
        yield (
            f'<rect class="beyond" fill="#a3190f" opacity=".1" x="{left}" y="3" width="{right - left:.1f}" '
            f'height="{_HEIGHT - 6}"/>'
        )


def _picture_title(finding: Finding, wording: PageWording) -> str:
    words = {"amount": wording.amount(finding), "interval": wording.interval(finding), "limit": wording.limit(finding)}
    return wording.say("picture_limit" if finding.threshold else "picture", **words)


def _axis(finding: Finding, all_findings: Sequence[Finding]) -> tuple[float, float]:
    """Return the ends of the axis for findings of the same unit and kind.

    The axis contains 0, and 1 for a ratio.
    """
    numbers = [0.0, *_limits(finding)[:1], 1.0] if finding.is_limit else [0.0, _no_gap(finding)]
    for other in all_findings:
        if (other.unit, other.kind) == (finding.unit, finding.kind):
            decided = other.decided_low, other.decided_high
            numbers += [n for n in (other.value, *limits_to_judge(other), *decided, other.limit) if n is not None]
    return min(numbers), max(numbers) if max(numbers) > min(numbers) else min(numbers) + 1
