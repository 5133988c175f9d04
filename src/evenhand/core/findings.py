"""Findings: what was found, in three layers. The headline a judge reads, the detail behind it, why there is no verdict.

An audit says what can be told or judged as `Claim`s; thresholds, verdicts and sentences are made here.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor, inf, log10
from typing import TYPE_CHECKING, Any, TypeAlias

from evenhand.core.families import Answer, Clarity, Question, answer
from evenhand.core.formats import Format, show, show_confidence, show_interval, show_p
from evenhand.core.metrics import Metric
from evenhand.core.records import Gap, Record, Value, column, coordinates_of, limits_to_judge, open_range
from evenhand.core.thresholds import (
    Threshold,
    Verdict,
    judged_size,
    limits_record,
)
from evenhand.errors import did_you_mean

if TYPE_CHECKING:
    from evenhand.core.spec import Spec

SHORT_VERDICTS: dict[Verdict, str] = {
    "meets": "Meets",
    "does_not_meet": "Does not meet",
    "insufficient_evidence": "Insufficient evidence",
    "no_threshold": "",
}

VERDICT_WORDS: dict[Verdict, str] = {
    "meets": "meets the threshold",
    "does_not_meet": "does not meet the threshold",
    "insufficient_evidence": "insufficient evidence",
    "no_threshold": "no threshold set",
}

SENTENCES: dict[str, str] = {
    "two_values": "{clause}.",
    "two_values_worse_off": "{clause} ({worse_off} worse off).",
    "two_values_differ": "{clause}; they differ beyond chance.",
    "some_groups_differ": "{clause}; some groups differ (joint test).",
    "no_clear_difference": "{clause}; no clear difference.",
    "not_tested": "{clause}; not tested.",
    "value": "{where}: {title} is {value:unit}.",
    "undefined": "{where}: {title} cannot be computed.",
    "not_comparable": "{where}: {title} cannot be compared between groups.",
    "not_in_the_data": "No {name} {wanted} in these data: the threshold for {title} cannot be judged.",
}
"""The sentences that several audits use; an audit adds its own to them."""

CLAUSE = "{where}: {title} is {group_value:unit} for {group} and {reference_value:unit} for {reference}"
"""Two values side by side; for some metrics an audit has a plainer one, as a sentence called "clause_METRIC"."""

_MOST_TIMES = 1_000
"""Beyond so many times the people, more of them is no advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Record):
    """One thing that was found."""

    audit: str = column("the audit")
    model: str | None = column("the model", None)
    model_reference: str | None = column("the model it is compared with", None)
    grouping: str | None = column("the grouping", None)
    group: str | None = column("the group", None)
    reference: str | None = column("the group it is compared with", None)
    stratum: str | None = column("the stratum", None)
    coordinates: dict[str, Any] = field(
        default_factory=dict, metadata={"meaning": "the audit's own coordinates, without nulls"}
    )
    metric: str = column("the metric")
    kind: str | None = column("of a gap: difference or ratio", None)
    against: str | None = column("of a gap: what the group is compared with", None)
    sentence_id: str = column("which sentence the headline is")
    arguments: dict[str, Any] = field(default_factory=dict, metadata={"meaning": "what the sentence is filled with"})
    headline: str = column("one sentence: at most 25 words and two numbers")
    detail: str = column("size, interval, p-value, people", "")
    reason: str = column("why there is no verdict, and what it would take", "")
    unit: str = column("the unit of the metric", "index")
    value: float | None = column("the number")
    low: float | None = column("lower limit of this number", None)
    high: float | None = column("upper limit of this number", None)
    joint_low: float | None = column("lower limit for the joint family", None)
    joint_high: float | None = column("upper limit for the joint family", None)
    p_value: float | None = column("p-value of this comparison alone", None)
    p_adjusted: float | None = column("p-value adjusted for all findings of the run without a threshold (Holm)", None)
    family: str | None = column("what the adjusted p-value, or the verdict, holds for together", None)
    joint_family: str | None = column("what the joint limits hold for together", None)
    n: int = column("the people (or answers) behind it")
    threshold: str | None = column("the limit in words", None)
    limit: float | None = column("the limit as a number", None)
    verdict: Verdict = column("whether the interval lies within the limit, beyond it, or covers both", "no_threshold")
    exploratory: bool = column("whether the plan, where one was sealed, did not foresee it", False)

    @property
    def text(self) -> str:
        """All three layers in one paragraph."""
        return " ".join(part for part in (self.headline, self.detail, self.reason) if part)

    @property
    def style(self) -> Format:
        """How its number is written."""
        kind = self.kind if self.kind in ("difference", "ratio") else None
        return Metric(name="", title="", unit=self.unit).style(kind)  # type: ignore[arg-type]

    def amount(self) -> str:
        """Return the number as it is written."""
        return f"{show(self.value, self.style)}{' points' if self.style == 'points' and self.value is not None else ''}"

    def interval(self) -> str:
        """Return the interval that a verdict rests on, as it is written."""
        return show_interval(*limits_to_judge(self), self.style)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Something that can be told, or judged by a threshold.

    Parameters
    ----------
    records : the first is told; a threshold is broken when it is for any of them, met when it is for all.
    sentence_id : the sentence of its headline.
    when : what is said instead where a difference is clear, unclear or untested in its family, as the parts of the
        claim that change; with a threshold it is clear where the limit is broken, and else nothing is said of it.
    arguments : what the sentence is filled with, or a function of the record that is told; always `where`, `title`.
    headline : whether it is told where no threshold is about it.
    aside : what else belongs into the detail, or a function of the record that is told.
    family : what joint limits hold for together, as in "all pairs of groups".
    undefined_id : the sentence where the number is undefined; by default one of core's.
    p_value : that of what is claimed, where it is not that of the record.
    key : claims with the same key say the same thing, which is told once; None where it has no other.
    withheld : why no verdict may be given, whatever the interval; None where one may. Where there is no number, it is
        the reason with or without a threshold.
    """

    records: tuple[Value | Gap, ...]
    sentence_id: str
    arguments: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]
    headline: bool = False
    aside: str | Callable[[Any], str] = ""
    family: str | None = None
    undefined_id: str | None = None
    p_value: float | None = None
    key: Hashable | None = None
    withheld: str | None = None
    when: Mapping[Clarity, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def tested(self) -> float | None:
        """The p-value of what is claimed; None where nothing is tested."""
        own: float | None = getattr(self.records[0], "p_value", None)
        return own if self.p_value is None else self.p_value

    def told_as(self, clarity: Clarity | None) -> Claim:
        """Return what is said where a difference is clear, unclear or untested in its family."""
        return self if clarity is None else replace(self, **self.when.get(clarity, {}))

    def sentence_of(self, record: Value | Gap) -> str:
        """Return which sentence tells a record."""
        if record.value is not None:
            return self.sentence_id
        return self.undefined_id or ("not_comparable" if isinstance(record, Gap) else "undefined")


ClaimsAt: TypeAlias = Callable[[float], Sequence[Claim]]
"""All claims of an audit, in their order, by limits at this confidence; limits are nested in it."""


@dataclass(frozen=True)
class FindingMaker:
    """Makes the findings of one audit.

    Parameters
    ----------
    spec : the audit's settings, with its thresholds.
    sentences : the audit's own sentences, by id.
    """

    spec: Spec
    sentences: Mapping[str, str] = field(default_factory=dict)

    def findings(self, claims: Sequence[Claim]) -> tuple[Finding, ...]:
        """Return the findings of an audit that is a run of its own."""
        questions = self.questions(claims)
        return self.told(claims, questions, answer(questions))

    def questions(self, claims: Sequence[Claim], at: ClaimsAt | None = None) -> list[Question]:
        """Return what is asked: everything that a threshold is about, then the headline claims that none is.

        `at` gives the same claims by limits at another confidence.
        """
        told: set[Hashable] = set()
        questions: list[Question] = []

        def ask(position: int, threshold: Threshold | None) -> None:
            told.add(_key(claims[position]))
            again = None if at is None else lambda confidence: at(confidence)[position]
            alpha = 1.0 - self.spec.confidence if threshold is not None else self.spec.finding_alpha
            questions.append(Question(self.spec.audit, claims[position], threshold, alpha, again))

        for threshold in self.spec.thresholds:
            for position, claim in enumerate(claims):
                if limits_record(threshold, claim.records[0], self.spec.aliases):
                    ask(position, threshold)
        for position, claim in enumerate(claims):
            if claim.headline and _key(claim) not in told:
                ask(position, None)
        return questions

    def told(
        self, claims: Sequence[Claim], questions: Sequence[Question], answers: Sequence[Answer]
    ) -> tuple[Finding, ...]:
        """Return the findings, those with a threshold first, as the whole run answers them.

        A threshold that fits nothing gives a finding too: insufficient evidence, with its reason.
        """
        told = list(zip(questions, answers, strict=True))
        findings: list[Finding] = []
        for threshold in self.spec.thresholds:
            fitting = [self._finding(asked, said) for asked, said in told if asked.threshold is threshold]
            findings += fitting or [self._nothing_fits(threshold, claims)]
        return (*findings, *(self._finding(asked, said) for asked, said in told if asked.threshold is None))

    def _finding(self, asked: Question, said: Answer) -> Finding:
        threshold, claim = asked.threshold, asked.claim.told_as(said.clarity)
        record = claim.records[0] if threshold is None else said.record
        metric = self.spec.known_metrics()[record.metric]
        kind, against = (record.kind, record.against) if isinstance(record, Gap) else (None, None)
        sentence_id = claim.sentence_of(record)
        told = claim.arguments(record) if callable(claim.arguments) else claim.arguments
        arguments = {"unit": metric.style(), **told}
        return Finding(
            audit=self.spec.audit,
            **_columns(record, _PLACE),
            coordinates=coordinates_of(record),
            metric=record.metric,
            kind=kind,
            against=against,
            sentence_id=sentence_id,
            arguments=arguments,
            headline=render(sentence_id, arguments, self.sentences),
            detail=self._detail(record, metric, claim, said),
            reason=_reason(record, metric, asked, said, self.spec.counted),
            unit=metric.unit,
            **_columns(record, _NUMBERS),
            p_value=claim.tested,
            p_adjusted=said.p_adjusted,
            family=said.family,
            joint_family=claim.family,
            n=record.n,
            threshold=threshold.in_words(points=metric.style(kind) == "points") if threshold else None,
            limit=threshold.limit if threshold else None,
            verdict=said.verdict,
        )

    def _detail(self, record: Value | Gap, metric: Metric, claim: Claim, said: Answer) -> str:
        """Return the size, interval and p-value of a number, the people behind it, and what the audit adds."""
        parts = [] if record.value is None else [*_certainty(record, metric, claim, self.spec.confidence, said.verdict)]
        if said.p_adjusted is not None and claim.tested is not None:
            parts.append(_p_values(said, claim.tested, self.spec.finding_alpha))
        counted = "; ".join([*parts, f"n = {record.n:,}"]) if record.value is not None else "; ".join(parts)
        aside = claim.aside(record) if callable(claim.aside) else claim.aside
        return " ".join(part for part in (_sentence(counted), aside) if part)

    def _nothing_fits(self, threshold: Threshold, claims: Sequence[Claim]) -> Finding:
        """Return the finding of a threshold that no record fits: what it names is not in these data, or too small."""
        name = self.spec.metric_of(threshold)
        metric = self.spec.known_metrics()[name]
        lacking, known = _lacking(threshold, [record for claim in claims for record in claim.records], name)
        arguments = {"title": metric.title_in_sentence, "name": lacking, "wanted": repr(getattr(threshold, lacking))}
        sentence_id = "not_in_the_data" if lacking != "metric" else "not_comparable"
        where = ", ".join(f"{key} {value}" for key, value in threshold.named().items()) or "All groups"
        arguments |= {"where": where}
        few = f"too few {self.spec.counted} to compare any two groups: each needs at least {self.spec.min_count}"
        why = did_you_mean(getattr(threshold, lacking), known) if known else few
        return Finding(
            audit=self.spec.audit,
            model=threshold.model,
            grouping=threshold.grouping,
            group=threshold.group,
            stratum=threshold.stratum,
            metric=name,
            kind=threshold.kind,
            against=threshold.against,
            sentence_id=sentence_id,
            arguments=arguments,
            headline=render(sentence_id, arguments, self.sentences),
            reason=f"{why[:1].upper()}{why[1:].removesuffix('.')}{'' if why.endswith('?') else '.'}",
            unit=metric.unit,
            value=None,
            n=0,
            threshold=threshold.in_words(points=metric.style(threshold.kind) == "points"),
            limit=threshold.limit,
            verdict="insufficient_evidence",
        )


def _key(claim: Claim) -> Hashable:
    return id(claim) if claim.key is None else claim.key


_PLACE = ("model", "model_reference", "grouping", "group", "reference", "stratum")
_NUMBERS = ("value", "low", "high", "joint_low", "joint_high")


def _columns(record: Value | Gap, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(record, name, None) for name in names}


def _certainty(record: Value | Gap, metric: Metric, claim: Claim, confidence: float, verdict: Verdict) -> Iterator[str]:
    """Yield the size of a gap, and the interval of a number: its own where it meets a limit, else the joint one."""
    style = metric.style(record.kind if isinstance(record, Gap) else None)
    if isinstance(record, Gap):
        yield _size(record, style)
    low, high = (record.low, record.high) if verdict == "meets" else limits_to_judge(record)
    if low is None and high is None:
        yield record.status if record.status != "ok" else "no interval"
    else:
        joint = (low, high) == (record.joint_low, record.joint_high)
        together = f" for {claim.family} together" if joint and claim.family else ""
        yield f"{show_confidence(confidence)} interval{together} {show_interval(low, high, style)}"


def _p_values(said: Answer, alone: float, alpha: float) -> str:
    """Return the adjusted p-value, what it is adjusted for, and that of the test alone where they differ."""
    adjusted = show_p(said.p_adjusted or 0.0, alpha)
    if said.family is None or said.family.startswith("1 "):
        return adjusted
    return f"{adjusted} adjusted for {said.family.partition(' of ')[0]} ({show_p(alone, alpha)} by itself)"


def _size(gap: Gap, style: Format) -> str:
    """Return how large a gap is, or what is left open of it."""
    bounds = open_range(gap)
    size = show(gap.value, style) if bounds is None else show_interval(*bounds, style)
    noun = " percentage points" if style == "points" else ""
    return f"{'a ratio' if gap.kind == 'ratio' else 'a gap'} of {size}{noun}"


def _reason(record: Value | Gap, metric: Metric, asked: Question, said: Answer, counted: str) -> str:
    """Return why there is no verdict, and what it would take to have one."""
    threshold, withheld = asked.threshold, asked.claim.withheld
    if withheld is not None and (threshold is not None or record.value is None):
        return _sentence(withheld)
    if record.value is None:
        return _sentence(record.status.removeprefix("undefined: "))
    if threshold is None or said.verdict != "insufficient_evidence":
        return ""
    if said.alone == "does_not_meet":
        return _sentence(_broken_alone(said, threshold.limit, counted))
    return _sentence(_undecided(record, metric, threshold.limit, counted))


def _broken_alone(said: Answer, limit: float, counted: str) -> str:
    """Return why a limit that is broken by itself is not said to be, and how many people would decide it."""
    alone = f"by itself the interval lies beyond the limit, but not when it is widened for the {said.family}"
    if said.widened is None:
        return f"{alone}; more {counted} would decide it"
    value, low, high = judged_size(said.widened)
    return alone + _more_needed(said.widened.n, counted, value=value or 0.0, low=low, high=high, limit=limit)


def _undecided(record: Value | Gap, metric: Metric, limit: float, counted: str) -> str:
    """Return why an interval decides nothing: there is none, or it covers the limit."""
    value, low, high = judged_size(record)
    if low is None and high is None:
        return f"there is {record.status}" if record.status != "ok" else "there is no interval"
    style = metric.style(record.kind if isinstance(record, Gap) else None)
    points = " points" if style == "points" else ""
    covers = f"the interval covers the limit of {show(limit, style)}{points}"
    bounds = open_range(record)
    if bounds is None:
        return covers + _more_needed(record.n, counted, value=value or 0.0, low=low, high=high, limit=limit)
    if bounds[0] <= limit <= bounds[1]:
        left_open = f"so does what is left open, {show_interval(*bounds, style)}{points}"
        return f"{covers}, and {left_open}: more {counted} of this kind would not decide it"
    return covers + _more_needed(
        record.n, counted, value=min(max(limit, bounds[0]), bounds[1]), low=low, high=high, limit=limit
    )


def _more_needed(n: int, counted: str, *, value: float, low: float | None, high: float | None, limit: float) -> str:
    """Say about how many people would decide: intervals shrink with the square root of their number."""
    end = low if limit < value else high
    times = inf if value == limit else 0.0 if end is None else ((end - value) / (limit - value)) ** 2
    if times > _MOST_TIMES:
        return f", and the value lies too near to it for any realistic number of {counted} to decide"
    if times <= 1 or not n:
        return f"; more {counted} might decide it"
    needed = n * times
    scale = 10 ** max(0, floor(log10(needed)) - 1)
    total = ceil(needed / scale) * scale
    return f"; it rests on {n:,} {counted}, and about {total:,} of the same kind in all would decide it"


def _sentence(text: str) -> str:
    text = text.rstrip(".")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _lacking(threshold: Threshold, records: Sequence[Value | Gap], metric: str) -> tuple[str, list[str]]:
    """Return which coordinate of a threshold no record has together with those before it, and those that there are."""
    own = [record for record in records if record.metric == metric]
    for name, wanted in threshold.named().items():
        known = list(dict.fromkeys(str(value) for record in own if (value := getattr(record, name, None)) is not None))
        if str(wanted) not in known:
            return name, known
        own = [record for record in own if str(getattr(record, name, None)) == str(wanted)]
    return "metric", []


class _Sentence(string.Formatter):
    """Fills a sentence; a number's format is one of ours, or 'unit' for that of the metric."""

    def __init__(self, unit: Format) -> None:
        self.unit = unit

    def format_field(self, value: Any, format_spec: str) -> Any:
        if not format_spec:
            return str(value)
        return show(value, self.unit if format_spec == "unit" else format_spec)  # type: ignore[arg-type]


def render(sentence_id: str, arguments: Mapping[str, Any], sentences: Mapping[str, str]) -> str:
    """Return a sentence with its arguments.

    Examples
    --------
    >>> render("value", {"where": "logistic", "title": "accuracy", "value": 0.8123, "unit": "percent"}, {})
    'logistic: accuracy is 81.2%.'
    """
    known = {**SENTENCES, **sentences}
    template = known[sentence_id].replace("{clause}", known.get(f"clause_{arguments.get('metric')}", CLAUSE))
    return _Sentence(arguments.get("unit", "number")).vformat(template, (), arguments)
