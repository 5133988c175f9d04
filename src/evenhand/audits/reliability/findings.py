"""The reliability findings in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from evenhand.audits.reliability.mistakes import GroupNoise, NoiseSetting
from evenhand.audits.reliability.records import GapRecord
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.audits.reliability.words import CAVEATS, HARM, MOVED_BY, in_sentence
from evenhand.core.compared import Compared
from evenhand.core.findings import Finding, judge, size_of_gap
from evenhand.core.spec import Threshold
from evenhand.errors import count
from evenhand.stats.intervals import bonferroni, t_quantile

_FIXED = "It holds for these models and these mistakes; other models or mistakes may give another gap."
_SMALLEST = 0.00005

Place = tuple[str, str, str]
"""Model, setting and grouping."""


def make_findings(gaps: Sequence[GapRecord], groups: Sequence[Compared], spec: ReliabilitySpec) -> tuple[Finding, ...]:
    """Return a finding for everything that a threshold limits, then for every mean gap that none does.

    A threshold that nothing can be held against gives a finding too, with insufficient evidence.
    """
    means = [gap for gap in gaps if gap.noise_level is None]
    levels, tests = _levels(gaps), sum(gap.p_value is not None for gap in gaps)
    unequal = {setting.name: _unequal(setting, groups, spec) for setting in spec.noise}
    words = {
        id(gap): _Words(gap, levels[gap.model, gap.setting, gap.grouping], tests, unequal[gap.setting], spec)
        for gap in means
    }
    findings: list[Finding] = []
    judged: set[int] = set()
    for threshold in spec.thresholds:
        for place in _places(threshold, groups, spec):
            own = [g for g in means if (g.model, g.setting, g.grouping, g.statistic) == (*place, threshold.metric)]
            limited = _limited(own, threshold)
            if not limited:
                findings.append(_nothing_to_judge(place, threshold, groups, spec))
            judged.update(id(gap) for gap in limited)
            findings += [words[id(gap)].judged(threshold, len(limited)) for gap in limited]
    rest = [gap for gap in means if id(gap) not in judged and gap.against == "reference"]
    return (*findings, *(words[id(gap)].finding() for gap in rest))


def _places(threshold: Threshold, groups: Sequence[Compared], spec: ReliabilitySpec) -> Iterator[Place]:
    for model in spec.model:
        for setting in spec.noise:
            for grouping in groups:
                if threshold.model in (None, model) and threshold.grouping in (None, grouping.name):
                    yield model, setting.name, grouping.name


def _limited(gaps: Sequence[GapRecord], threshold: Threshold) -> list[GapRecord]:
    """Return what a threshold limits: the largest gap of all pairs (two groups are one), or each to the reference."""
    worst = [gap for gap in gaps if gap.against == "worst_pair"]
    return worst if worst and threshold.against == "worst_pair" else [g for g in gaps if g.against == "reference"]


def _nothing_to_judge(place: Place, threshold: Threshold, groups: Sequence[Compared], spec: ReliabilitySpec) -> Finding:
    compared = next(grouping for grouping in groups if grouping.name == place[2])
    claim = (
        f"{_where(place)}: {in_sentence(threshold.metric)} cannot be compared, since fewer than two groups have "
        f"min_count {spec.min_count} people."
    )
    return Finding(
        audit="reliability",
        model=place[0],
        grouping=place[2],
        stratum=None,
        metric=threshold.metric,
        kind="difference",
        against=threshold.against,
        claim=claim,
        sentence=claim,
        unit="",
        value=None,
        low=None,
        high=None,
        n=sum(compared.sizes),
        threshold=threshold.in_words(),
        verdict="insufficient_evidence",
        caveat=f"{CAVEATS[threshold.metric]} {_FIXED}",
    )


def _where(place: Place) -> str:
    return f"{place[0]}, by {place[2]}, noise {place[1]}"


@dataclass(frozen=True)
class _Words:
    """One gap in words.

    Parameters
    ----------
    gap : the gap, averaged over noise levels.
    levels : the noise levels, in words.
    tests : how many tests the run has.
    unequal : by what people were given different mistakes, in words; empty where all go wrong alike.
    spec : the settings.
    """

    gap: GapRecord
    levels: str
    tests: int
    unequal: str
    spec: ReliabilitySpec

    def finding(self) -> Finding:
        """Return the finding without a limit."""
        gap = self.gap
        told = f"; {self.unequal}" if self.unequal else ""
        claim = f"{_where((gap.model, gap.setting, gap.grouping))}: {self._claim()}{told}"
        return Finding(
            audit="reliability",
            model=gap.model,
            grouping=gap.grouping,
            stratum=None,
            metric=gap.statistic,
            kind="difference",
            against=gap.against,
            claim=f"{claim}.",
            sentence=f"{claim}{self._certainty(gap, '')}; n = {gap.n:,}.",
            unit="",
            value=gap.value,
            low=gap.low,
            high=gap.high,
            n=gap.n,
            threshold=None,
            verdict="no_threshold",
            caveat=f"{CAVEATS[gap.statistic]} {_FIXED}{self._not_the_model_alone()}",
        )

    def judged(self, threshold: Threshold, together: int) -> Finding:
        """Return the finding with the verdict of a limit, by limits that hold for all gaps it is held against."""
        gap, where = self.gap, ""
        if gap.against == "reference" and together > 1 and gap.low is not None:
            confidence = bonferroni(self.spec.confidence, together)
            freedom = float("inf") if gap.df is None else gap.df
            half = float(t_quantile(freedom, confidence)) * (gap.stderr or 0.0)
            gap = replace(gap, low=(gap.value or 0.0) - half, high=(gap.value or 0.0) + half)
            where = f" for all {together} groups together"
        plain = self.finding()
        claim = plain.claim.removesuffix(".")
        return replace(
            plain,
            against=threshold.against,
            sentence=f"{claim}{self._certainty(gap, where)}; n = {gap.n:,}.",
            low=gap.low,
            high=gap.high,
            threshold=threshold.in_words(),
            verdict=judge(threshold, *size_of_gap("difference", gap.value, gap.low, gap.high)),
        )

    def _claim(self) -> str:
        gap, name = self.gap, in_sentence(self.gap.statistic)
        if gap.value is None:
            return f"the gap in {name} between {gap.group} and {gap.reference} is {gap.status}"
        if gap.against == "worst_pair":
            return f"of all pairs of groups the largest gap is {self._amount()}{self._lacking()}"
        if not told_apart(gap, self.spec):
            return f"{self._undecided()}{self._amount()}{self._lacking()}"
        lower = gap.group if gap.value < 0 else gap.reference
        if gap.statistic in HARM:
            return f"mistakes hurt {lower} more; {self._amount()}"
        return f"{self._amount()}; {MOVED_BY[gap.statistic]}, so it does not say whom mistakes hurt more"

    def _not_the_model_alone(self) -> str:
        if not self.unequal:
            return ""
        told = f"{self.unequal[0].upper()}{self.unequal[1:]}"
        return f" {told}: a gap can come from that alone, and need not be what the model makes of equal mistakes."

    def _lacking(self) -> str:
        """Return why there is no interval, or none on one side."""
        return "" if self.gap.status == "ok" else f"; {self.gap.status.removeprefix('unbounded above: ')}"

    def _undecided(self) -> str:
        gap = self.gap
        if gap.p_value is None or not gap.value:
            return ""
        if gap.p_value < 1.0 - self.spec.confidence:
            return f"no clear difference, counting all {self.tests} tests; "
        return "no clear difference; "

    def _amount(self) -> str:
        gap, name, value = self.gap, in_sentence(self.gap.statistic), self.gap.value or 0.0
        lower, higher = (gap.group, gap.reference) if value < 0 else (gap.reference, gap.group)
        if abs(value) >= _SMALLEST:
            amount = f"{name} is {decimals(abs(value))} lower for {lower} than for {higher}"
        elif value:
            amount = f"{name} differs by less than 0.0001 between {gap.group} and {gap.reference}"
        else:
            amount = f"{name} is the same for {gap.group} and {gap.reference}"
        if gap.against == "worst_pair":
            pair = f"{lower} and {higher}"
            amount = (
                f"{decimals(abs(value))} in {name}, between {pair}, {lower} being lower" if value else f"0 in {name}"
            )
        return f"{amount} on average over {self.levels}"

    def _certainty(self, gap: GapRecord, where: str) -> str:
        """Return how sure a gap is; `where` says for which gaps the limits hold together."""
        if gap.value is None or (gap.low is None and gap.high is None):
            return ""
        sure = f"{100 * self.spec.confidence:g}% interval"
        if gap.against == "worst_pair":
            _, least, most = size_of_gap("difference", gap.value, gap.low, gap.high)
            if gap.low is None:
                return f" (at least {decimals(least or 0.0)} with {100 * self.spec.confidence:g}% confidence)"
            ends = f"{decimals(least or 0.0)} to {decimals(most or 0.0)}"
            return f" (its {sure}, for all pairs together: {ends})"
        interval = f"{sure}{where} {decimals(gap.low or 0.0)} to {decimals(gap.high or 0.0)}"
        return f" ({gap.group} less {gap.reference}: {interval}{self._tested()})"

    def _tested(self) -> str:
        gap = self.gap
        if gap.p_value is None:
            return ""
        alone = "p < 0.001" if gap.p_value < 0.001 else f"p = {gap.p_value:.3f}"
        if gap.p_adjusted is None or self.tests < 2:
            return f"; {alone}"
        whole = "below 0.001" if gap.p_adjusted < 0.001 else f"{gap.p_adjusted:.3f}"
        return f"; {alone}, {whole} adjusted for {count(self.tests, 'test')}"


def told_apart(gap: GapRecord, spec: ReliabilitySpec) -> bool:
    """Tell whether a gap is clear, counting all tests of the run."""
    return bool(gap.value) and gap.p_adjusted is not None and gap.p_adjusted < 1.0 - spec.confidence


def decimals(value: float) -> str:
    """Return a small difference with enough places to be seen.

    Examples
    --------
    >>> decimals(0.0363), decimals(-0.00051), decimals(-0.0)
    ('0.036', '-0.0005', '0')
    """
    return "0" if value == 0 else f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.4f}"


def _unequal(setting: NoiseSetting, groups: Sequence[Compared], spec: ReliabilitySpec) -> str:
    """Return by what people were given different mistakes, in words; empty where all go wrong alike."""
    for grouping, told in spec.group_noise.items():
        labels = [label for compared in groups if compared.name == grouping for label in compared.groups]
        ways = [told.get(label, GroupNoise()) for label in dict.fromkeys((*labels, *told))]
        if any(way != ways[0] for way in ways):
            return f"by {grouping}, people were given different mistakes"
    if setting.pilot is not None and setting.pilot.by is not None:
        return f"mistakes were learned apart by {setting.pilot.by}"
    return ""


def _levels(gaps: Sequence[GapRecord]) -> dict[Place, str]:
    """Return for each place the noise levels that a mean is over, in words."""
    found: dict[Place, set[float]] = {}
    for gap in gaps:
        if gap.noise_level is not None:
            found.setdefault((gap.model, gap.setting, gap.grouping), set()).add(gap.noise_level)
    return {
        place: f"the noise level {max(levels):g}"
        if len(levels) == 1
        else f"{len(levels)} noise levels from {min(levels):g} to {max(levels):g}"
        for place, levels in found.items()
    }
