"""Findings in three layers: the headline, the details, and the reason for a missing verdict.

An audit returns `Claim`s; this module adds thresholds, verdicts and sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any, Literal, Protocol

from evenhand.core.estimates import Estimate
from evenhand.core.families import ClaimCheck, ClaimOutcome, Significance, check_claims
from evenhand.core.metrics import Metric
from evenhand.core.needed import POWER, people_still_needed
from evenhand.core.omitted import Omitted, breaking_reason
from evenhand.core.records import OK, Gap, Record, Value, column, coordinates_of, limits_to_judge, open_range
from evenhand.core.thresholds import (
    UNDECIDED,
    Threshold,
    Verdict,
    judged_size,
    limit_in_unit,
    limits_record,
)
from evenhand.errors import did_you_mean
from evenhand.messages import Argument, Catalogue, Message
from evenhand.messages.catalogue import catalogue_of, fields
from evenhand.messages.formats import Format, show, show_interval, show_p
from evenhand.messages.shared import say

if TYPE_CHECKING:
    from evenhand.core.spec import Spec

SHORT_VERDICTS: dict[Verdict, str] = {
    "meets": "Meets",
    "does_not_meet": "Does not meet",
    "not_confirmed": "Beyond, not confirmed",
    "insufficient_evidence": "Insufficient evidence",
    "no_threshold": "",
}

VERDICT_WORDS: dict[Verdict, str] = {
    "meets": "meets the threshold",
    "does_not_meet": "does not meet the threshold",
    "not_confirmed": "beyond the threshold, not confirmed",
    "insufficient_evidence": "insufficient evidence",
    "no_threshold": "no threshold set",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Record):
    """A statement of a run, with its numbers."""

    number: str = column("its number in the report, such as F1", "")
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
    headline: Message = column("one sentence: at most 25 words and two numbers")
    detail: Message | None = column("size, interval, p-value, people", None)
    reason: Message | None = column(
        "why there is no verdict, and what it would take; whom a verdict that the limit is met does not compare", None
    )
    unit: str = column("the unit of the metric", "index")
    value: float | None = column("the number")
    low: float | None = column("lower limit of this number", None)
    high: float | None = column("upper limit of this number", None)
    joint_low: float | None = column("lower limit for the joint family", None)
    joint_high: float | None = column("upper limit for the joint family", None)
    lower: float | None = column("the least that missing data leave possible; null if the number is known", None)
    upper: float | None = column("the most that missing data leave possible", None)
    bound_low: float | None = column("one-sided lower limit by which the number meets its limit", None)
    bound_high: float | None = column("one-sided upper limit by which the number meets its limit", None)
    decided_low: float | None = column("lower limit that decided a verdict beyond the limit (Holm)", None)
    decided_high: float | None = column("upper limit that decided a verdict beyond the limit (Holm)", None)
    p_value: float | None = column("p-value of this comparison alone", None)
    p_adjusted: float | None = column("p-value adjusted for all tested findings of the run (Holm)", None)
    significance: Significance | None = column(
        "whether a difference is established after adjustment: directed (also between which two groups), significant, "
        "not_significant or untested",
        None,
    )
    family: Message | None = column("what the adjusted p-value holds for together", None)
    verdict_family: Message | None = column("what the verdict holds for together", None)
    joint_family: Message | None = column("what the joint limits hold for together", None)
    n: int = column("the people (or answers) behind it; if several groups were tested together, of all of them")
    threshold: Message | None = column("the limit in words", None)
    limit: float | None = column("the limit as a number", None)
    verdict: Verdict = column("whether the interval lies within the limit, beyond it, or covers both", "no_threshold")
    exploratory: bool = column("whether the plan, where one was sealed, did not foresee it", False)

    @property
    def text(self) -> str:
        """All three layers as one paragraph."""
        return " ".join(str(part) for part in (self.headline, self.detail, self.reason) if part is not None)

    @property
    def sentence_id(self) -> str:
        """The key of the headline's sentence in its catalogue."""
        return self.headline.id.partition(".")[2]

    @property
    def arguments(self) -> Mapping[str, Argument]:
        """The arguments of the headline."""
        return self.headline.args

    @property
    def style(self) -> Format:
        """The format of the finding's value."""
        kind = self.kind if self.kind in ("difference", "ratio") else None
        return Metric(name="", title="", unit=self.unit).style(kind)  # type: ignore[arg-type]

    @property
    def badge(self) -> Message | None:
        """The audit's own words for the verdict, such as 'fairer alternative shown'; None for the usual words."""
        catalogue, key = catalogue_of(self.headline.id) or (None, "")
        if catalogue is None or self.threshold is None:
            return None
        names = (f"badge_{key}_{self.verdict}", f"badge_{key}")
        return next((catalogue(name) for name in names if name in catalogue), None)

    @property
    def is_limit(self) -> bool:
        """Whether the value is the only limit of its interval, such as the largest improvement shown."""
        ends = [end for end in limits_to_judge(self) if end is not None]
        return ends == [self.value]

    @property
    def judgement(self) -> str:
        """The verdict in English, such as 'does not meet the threshold'."""
        return VERDICT_WORDS[self.verdict] if self.badge is None else str(self.badge)

    def amount(self) -> str:
        """Return the formatted value, or the formatted range that missing data leave possible."""
        points = " points" if self.style == "points" and self.value is not None else ""
        if self.lower is not None and self.upper is not None:
            return f"{show(self.lower, self.style)} to {show(self.upper, self.style)}{points}"
        return f"{show(self.value, self.style)}{points}"

    def interval(self) -> str:
        """Return the formatted interval behind the verdict."""
        return show_interval(*limits_to_judge(self), self.style)


Arguments = Mapping[str, Argument]
"""The arguments of a sentence, by placeholder."""


def limits_of(gap: Gap, findings: Sequence[Finding]) -> tuple[float, ...]:
    """Return the distinct limits of the thresholds that judge a gap."""
    same = ("model", "grouping", "group", "reference", "metric", "kind", "against")
    limits = (f for f in findings if f.limit is not None and all(getattr(f, x) == getattr(gap, x) for x in same))
    return tuple(dict.fromkeys(finding.limit for finding in limits if finding.limit is not None))


class Chance(Protocol):
    """Simulation of a claim's test with more people."""

    def __call__(self, threshold: Threshold, family: int, times: float, *, broken: bool) -> float:
        """Return the probability that the verdict is decided."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement to test or to judge by a threshold.

    Parameters
    ----------
    estimates : the values or gaps; the headline states the first. A threshold is violated if any of them violates it,
        and met if all meet it.
    sentence_id : the id of the headline's sentence in the audit's catalogue or in the shared catalogue.
    chance : the function that returns the probability of a verdict on a threshold with a multiple of the people, in a
        family of verdicts; None if it is not simulated.
    pairs : the number of pairs of groups that the stated pair is chosen from; with several pairs, only the
        significance "directed" means that the stated pair differs.
    named_by : the criterion of a difference between the stated pair: its p-value, or its limits if the p-value belongs
        to a joint test.
    tested_people : the number of people in all groups of a joint test, if it is larger than the record's.
    when : the changes to the claim by significance in its family. A violated limit is significant. A directed
        difference also has the changes of a significant one. A claim with a threshold and without a test is unchanged.
    arguments : the arguments of the sentence (including `where` and `title`), or a function of the record that returns
        them.
    headline : whether the claim is a finding without a threshold, too.
    aside : additions to the details, or a function of the record that returns them.
    family : the family of the joint limits, such as "all pairs of groups".
    undefined_id : the id of the sentence on an undefined value; by default a shared sentence.
    p_value : the p-value of the claim, if it differs from the record's.
    key : the key of equivalent claims, which give one finding; None without equivalent claims.
    test_key : the key of claims with the same p-value that state the outcome of one test; None without such claims.
    one_sided : whether the limits are exact enough to base "meets" on one-sided limits at alpha.
    condition : the condition of the limits' validity, stated with a verdict that they decide, or else in the details.
    withheld : why no verdict may be given for any interval, or None. Without a value, it is the reason, with or
        without a threshold.
    omitted : the groups left out because they are too small; a limit that one of them violates is not met.
    """

    estimates: tuple[Estimate[Value | Gap], ...]
    sentence_id: str
    arguments: Arguments | Callable[[Any], Arguments]
    headline: bool = False
    aside: Message | Callable[[Any], Message | None] | None = None
    family: Message | None = None
    undefined_id: str | None = None
    p_value: float | None = None
    key: Hashable | None = None
    test_key: Hashable | None = None
    one_sided: bool = False
    condition: Message | None = None
    withheld: Message | None = None
    omitted: Omitted = field(default_factory=Omitted)
    chance: Chance | None = None
    pairs: int = 1
    named_by: Literal["p_value", "limits"] = "p_value"
    tested_people: int | None = None
    when: Mapping[Significance, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def records(self) -> tuple[Value | Gap, ...]:
        """The records with limits at the audit's confidence."""
        return tuple(estimate.record for estimate in self.estimates)

    @property
    def tested(self) -> float | None:
        """The p-value of the claim; None if it was not tested."""
        p_value: float | None = getattr(self.records[0], "p_value", None)
        return p_value if self.p_value is None else self.p_value

    def with_wording_for(self, significance: Significance | None) -> Claim:
        """Return the claim with the wording for this significance."""
        wider = self.when.get("significant", {}) if significance == "directed" else {}
        return self if significance is None else replace(self, **{**wider, **self.when.get(significance, {})})

    def sentence_of(self, record: Value | Gap) -> str:
        """Return the id of the sentence on a record."""
        if record.value is not None:
            return self.sentence_id
        return self.undefined_id or ("not_comparable" if isinstance(record, Gap) else "undefined_value")


@dataclass(frozen=True)
class FindingMaker:
    """Builder of one audit's findings.

    Parameters
    ----------
    spec : the audit's settings, with its thresholds.
    catalogue : the audit's own catalogue.
    """

    spec: Spec
    catalogue: Catalogue = say

    def findings(self, claims: Sequence[Claim]) -> tuple[Finding, ...]:
        """Return the findings of an audit that runs alone."""
        checks = self.checks(claims)
        return self.build_findings(claims, checks, check_claims(checks))

    def checks(self, claims: Sequence[Claim]) -> list[ClaimCheck]:
        """Return the checks: claims with each of their thresholds, and then headline claims without a threshold."""
        checked: set[Hashable] = set()
        checks: list[ClaimCheck] = []

        def add(position: int, threshold: Threshold | None) -> None:
            checked.add(_key(claims[position]))
            alpha = 1.0 - self.spec.confidence if threshold is not None else self.spec.finding_alpha
            checks.append(ClaimCheck(self.spec.audit, claims[position], threshold, alpha, self.spec.finding_alpha))

        for threshold in self.spec.thresholds:
            for position, claim in enumerate(claims):
                if limits_record(threshold, claim.records[0], self.spec.aliases):
                    add(position, threshold)
        for position, claim in enumerate(claims):
            if claim.headline and _key(claim) not in checked:
                add(position, None)
        return checks

    def build_findings(
        self, claims: Sequence[Claim], checks: Sequence[ClaimCheck], outcomes: Sequence[ClaimOutcome]
    ) -> tuple[Finding, ...]:
        """Return the findings from the outcomes of the whole run, findings with a threshold first.

        A threshold that fits no record gives a finding of insufficient evidence, with the reason.
        """
        checked = list(zip(checks, outcomes, strict=True))
        findings: list[Finding] = []
        for threshold in self.spec.thresholds:
            fitting = [self._finding(check, outcome) for check, outcome in checked if check.threshold is threshold]
            findings += fitting or [self._nothing_fits(threshold, claims)]
        return (*findings, *(self._finding(check, outcome) for check, outcome in checked if check.threshold is None))

    def _finding(self, check: ClaimCheck, outcome: ClaimOutcome) -> Finding:
        threshold, claim = check.threshold, check.claim.with_wording_for(outcome.significance)
        record = claim.records[0] if threshold is None else outcome.record
        metric = self.spec.known_metrics()[record.metric]
        kind, against = (record.kind, record.against) if isinstance(record, Gap) else (None, None)
        sentence_id = claim.sentence_of(record)
        arguments = claim.arguments(record) if callable(claim.arguments) else claim.arguments
        decided = (None, None) if outcome.widened is None else limits_to_judge(outcome.widened)
        bounds = open_range(record) or (None, None)
        return Finding(
            audit=self.spec.audit,
            **_columns(record, _PLACE),
            coordinates=coordinates_of(record),
            metric=record.metric,
            kind=kind,
            against=against,
            headline=self.sentence(sentence_id, {"unit": metric.style(), "metric": record.metric, **arguments}),
            detail=self._detail(record, metric, claim, outcome),
            reason=_conditional_reason(record, metric, check, outcome, self.spec.counted),
            unit=metric.unit,
            **_columns(record, _NUMBERS),
            lower=bounds[0],
            upper=bounds[1],
            bound_low=None if outcome.bounds is None else outcome.bounds[0],
            bound_high=None if outcome.bounds is None else outcome.bounds[1],
            decided_low=decided[0],
            decided_high=decided[1],
            p_value=claim.tested,
            p_adjusted=outcome.p_adjusted,
            significance=outcome.significance,
            family=None if outcome.family is None else outcome.family.message,
            verdict_family=None if outcome.verdict_family is None else outcome.verdict_family.message,
            joint_family=claim.family,
            n=_people_behind(record, claim),
            threshold=threshold.message(metric.style(kind)) if threshold else None,
            limit=threshold.limit if threshold else None,
            verdict=outcome.verdict,
        )

    def sentence(self, sentence_id: str, arguments: Arguments) -> Message:
        """Return a sentence of the audit or a shared one; a sentence on two values contains the metric's clause."""
        catalogue = self.catalogue if sentence_id in self.catalogue else say
        clause = f"clause_{arguments.get('metric')}"
        if any(placeholder.name == "clause" for placeholder in fields(catalogue.sentences[sentence_id])):
            worded = self.catalogue(clause, **arguments) if clause in self.catalogue else say("clause", **arguments)
            arguments = {**arguments, "clause": worded}
        return catalogue(sentence_id, **arguments)

    def _detail(self, record: Value | Gap, metric: Metric, claim: Claim, outcome: ClaimOutcome) -> Message | None:
        """Return the details of a value: size, interval, p-value, people, and the audit's additions."""
        parts = [] if record.value is None else [*_certainty(record, metric, claim, self.spec.confidence, outcome)]
        if outcome.p_adjusted is not None and claim.tested is not None:
            parts.append(_p_values(outcome, claim.tested, self.spec.finding_alpha))
        if record.value is not None:
            parts.append(say("people_behind", n=_people_behind(record, claim)))
        aside = claim.aside(record) if callable(claim.aside) else claim.aside
        numbers = [say("detail", parts=tuple(parts))] if parts else []
        condition = None if outcome.verdict in _ON_LIMITS else claim.condition
        not_compared = None if outcome.verdict == "meets" else claim.omitted.names()
        more = (_clear_alone(record, outcome), condition, aside, not_compared)
        return join_sentences([*numbers, *(message for message in more if message is not None)])

    def _nothing_fits(self, threshold: Threshold, claims: Sequence[Claim]) -> Finding:
        """Return the finding on a threshold that fits no record."""
        name = self.spec.metric_of(threshold)
        metric = self.spec.known_metrics()[name]
        missing, known_values = _missing_coordinate(
            threshold, [record for claim in claims for record in claim.records], name
        )
        where = [say("coordinate", name=key, value=value) for key, value in threshold.named().items()]
        few = say("too_few", counted=self.spec.counted, least=self.spec.min_count)
        why = did_you_mean(getattr(threshold, missing), known_values) if known_values else few
        return Finding(
            audit=self.spec.audit,
            model=threshold.model,
            grouping=threshold.grouping,
            group=threshold.group,
            stratum=threshold.stratum,
            metric=name,
            kind=threshold.kind,
            against=threshold.against,
            headline=say(
                "not_in_the_data" if missing != "metric" else "not_comparable",
                title=metric.title_in_sentence,
                name=missing,
                wanted=getattr(threshold, missing),
                where=say("named_place", coordinates=tuple(where)) if where else say("everywhere"),
            ),
            reason=say("sentence", text=why),
            unit=metric.unit,
            value=None,
            n=0,
            threshold=threshold.message(metric.style(threshold.kind)),
            limit=threshold.limit,
            verdict="insufficient_evidence",
        )


def _key(claim: Claim) -> Hashable:
    return id(claim) if claim.key is None else claim.key


_PLACE = ("model", "model_reference", "grouping", "group", "reference", "stratum")
_NUMBERS = ("value", "low", "high", "joint_low", "joint_high")


def _columns(record: Value | Gap, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(record, name, None) for name in names}


def all_of_things(number: int, things: Literal["groups", "pairs"]) -> Message:
    """Return a phrase such as 'both groups' or 'all 3 groups'."""
    return say(f"both_{things}") if number == 2 else say(f"all_of_{things}", n=number)


def join_sentences(messages: Sequence[Message]) -> Message | None:
    """Join sentences into one message; return None for an empty list."""
    if len(messages) < 2:
        return messages[0] if messages else None
    return say("sentences", parts=tuple(messages))


def _certainty(
    record: Value | Gap, metric: Metric, claim: Claim, confidence: float, outcome: ClaimOutcome
) -> Iterator[Message]:
    """Yield the size of a gap and an interval: the value's own interval if it meets a limit, else the joint one."""
    style = _style(record, metric)
    if isinstance(record, Gap):
        yield _size(record, style)
    if outcome.bounds is not None:
        sentence = "one_sided" if None in outcome.bounds else "one_sided_both"
        yield say(sentence, confidence=confidence, range=interval_message(*outcome.bounds, style))
        return
    low, high = (record.low, record.high) if outcome.verdict == "meets" else limits_to_judge(record)
    if low is None and high is None:
        yield record.status if record.status.id != "core.ok" else say("no_bounds")
        return
    joint = (low, high) == (record.joint_low, record.joint_high) and claim.family is not None
    interval: dict[str, Argument] = {"confidence": confidence, "range": interval_message(low, high, style)}
    yield say("joint_interval", family=claim.family, **interval) if joint else say("interval", **interval)


def interval_message(low: float | None, high: float | None, style: Format) -> Message:
    """Return an interval as a message, such as '0.12 to 0.34'; at least one limit must be known."""
    if low is None:
        return say("at_most_value", high=high, unit=style)
    return (
        say("at_least_value", low=low, unit=style) if high is None else say("between", low=low, high=high, unit=style)
    )


def _clear_alone(record: Value | Gap, outcome: ClaimOutcome) -> Message | None:
    """Return the reason why a difference is not significant although its interval excludes equality, or None."""
    if not isinstance(record, Gap) or outcome.significance != "not_significant" or outcome.bounds is not None:
        return None
    low, high = limits_to_judge(record)
    equal = 1.0 if record.kind == "ratio" else 0.0
    excludes = (low is not None and low > equal) or (high is not None and high < equal)
    return say("clear_alone", n=outcome.family.size) if excludes and outcome.family is not None else None


def _p_values(outcome: ClaimOutcome, alone: float, alpha: float) -> Message:
    """Return the adjusted p-value, with the unadjusted one if it differs when formatted."""
    adjusted, unadjusted = show_p(outcome.p_adjusted or 0.0, alpha), show_p(alone, alpha)
    if outcome.family is None or outcome.family.size == 1:
        return say("p_value", p=adjusted)
    if adjusted == unadjusted:
        return say("p_adjusted_alike", adjusted=adjusted)
    return say("p_adjusted", adjusted=adjusted, alone=unadjusted)


def _size(gap: Gap, style: Format) -> Message:
    """Return the size of a gap, or the range that missing data leave possible."""
    bounds = open_range(gap)
    noun = "ratio" if gap.kind == "ratio" else "gap"
    ending = "_points" if style == "points" else ""
    if bounds is None:
        return say(f"{noun}_size{ending}", size=gap.value, unit=style)
    return say(f"{noun}_open{ending}", low=bounds[0], high=bounds[1], unit=style)


_ON_LIMITS: tuple[Verdict, ...] = ("meets", "does_not_meet", "not_confirmed")
"""The verdicts that limits decide."""


def _conditional_reason(
    record: Value | Gap, metric: Metric, check: ClaimCheck, outcome: ClaimOutcome, counted: str
) -> Message | None:
    """Return the condition of the limits that decide a verdict, and then the reason for the verdict."""
    reason, condition = _reason(record, metric, check, outcome, counted), check.claim.condition
    if condition is None or outcome.verdict not in _ON_LIMITS:
        return reason
    return join_sentences([condition, *(() if reason is None else sentences_of(reason))])


def _reason(
    record: Value | Gap, metric: Metric, check: ClaimCheck, outcome: ClaimOutcome, counted: str
) -> Message | None:
    """Return the reason for a missing verdict and the data that would decide it, or the groups not compared."""
    threshold, withheld = check.threshold, check.claim.withheld
    if withheld is not None and (threshold is not None or record.value is None):
        why = withheld
    elif record.value is None and record.status == OK:
        return None  # its numbers are withheld
    elif record.value is None:
        why = without_kind(record.status)
    elif threshold is None or outcome.verdict not in UNDECIDED:
        return check.claim.omitted.names() if outcome.verdict == "meets" else None
    elif breaking := check.breaking():
        why = breaking_reason(breaking, limit_in_unit("limit", threshold.limit, _style(record, metric)), metric.style())
    elif outcome.verdict == "not_confirmed":
        return _broken_alone(record, check, outcome, counted)
    else:
        return _undecided(record, metric, check, outcome, counted)
    return say("sentence", text=why)


def without_kind(status: Message) -> Message:
    """Return the reason why a value, an interval or a comparison is missing, without naming which."""
    why = status.args.get("why")
    return why if isinstance(why, Message) else status


def _broken_alone(record: Value | Gap, check: ClaimCheck, outcome: ClaimOutcome, counted: str) -> Message:
    """Return the reason why a violated limit is not confirmed in its family, and how many people would decide it."""
    family = None if outcome.verdict_family is None else outcome.verdict_family.message
    needed = 0.0 if outcome.widened is None else people_still_needed(check, outcome, record)
    return _with_advice(say("widened", family=family), needed, counted, _people_behind(record, check.claim))


def _undecided(record: Value | Gap, metric: Metric, check: ClaimCheck, outcome: ClaimOutcome, counted: str) -> Message:
    """Return the reason why an interval decides nothing: it is missing, or it contains the limit."""
    _, low, high = judged_size(record)
    if low is None and high is None:
        no_interval = record.status.id == "core.ok"
        text = say("there_is_no_interval") if no_interval else say("there_is_none", status=record.status)
        return say("sentence", text=text)
    style, limit = _style(record, metric), check.threshold.limit if check.threshold is not None else 0.0
    limit_message = limit_in_unit("limit", limit, style)
    bounds, points = open_range(record), "_points" if style == "points" else ""
    if bounds is not None and bounds[0] <= limit <= bounds[1]:
        left_open = say(f"open_range{points}", low=bounds[0], high=bounds[1], unit=style)
        return say("sentence", text=say("covers_open", limit=limit_message, range=left_open, counted=counted))
    needed = people_still_needed(check, outcome, record)
    return _with_advice(say("covers", limit=limit_message), needed, counted, _people_behind(record, check.claim))


def _people_behind(record: Value | Gap, claim: Claim) -> int:
    return record.n if claim.tested_people is None else claim.tested_people


def _with_advice(why: Message, needed: float, counted: str, compared: int) -> Message:
    """Return the reason why there is no verdict, with a sentence on how many more people would decide it."""
    key = "more_too_near" if needed == inf else "more_needed" if needed else "more_might"
    key = f"{key}_{counted}" if f"{key}_{counted}" in say else key  # answers are of critics and of cases
    advice = say(key, counted=counted, needed=None if needed == inf else needed, chance=POWER, compared=compared)
    return say("sentences", parts=(say("sentence", text=why), advice))


def advice_of(reason: Message | None) -> Message | None:
    """Return the sentence of a reason on how many more people would decide a verdict, or None."""
    sentences = () if reason is None else sentences_of(reason)
    return next((part for part in sentences if part.id.startswith("core.more_needed")), None)


def beside_numbers(detail: Message | None) -> tuple[Message | None, tuple[Message, ...]]:
    """Return the parts of details beside the numbers: the people, and the sentences after the numbers."""
    sentences = () if detail is None else sentences_of(detail)
    if not sentences or sentences[0].id != "core.detail":
        return None, sentences
    parts = sentences[0].args["parts"]
    numbers = parts if isinstance(parts, tuple) else ()
    people = next((part for part in numbers if isinstance(part, Message) and part.id == "core.people_behind"), None)
    return people, sentences[1:]


def sentences_of(message: Message) -> tuple[Message, ...]:
    """Return the sentences joined in a message, or the message alone."""
    parts = message.args.get("parts") if message.id == "core.sentences" else None
    return tuple(part for part in parts if isinstance(part, Message)) if isinstance(parts, tuple) else (message,)


def _style(record: Value | Gap, metric: Metric) -> Format:
    return metric.style(record.kind if isinstance(record, Gap) else None)


def _missing_coordinate(threshold: Threshold, records: Sequence[Value | Gap], metric: str) -> tuple[str, list[str]]:
    """Return a threshold's first coordinate that matches no record, and the values that occur."""
    candidates = [record for record in records if record.metric == metric]
    for name, required in threshold.named().items():
        values = list(
            dict.fromkeys(str(value) for record in candidates if (value := getattr(record, name, None)) is not None)
        )
        if str(required) not in values:
            return name, values
        candidates = [record for record in candidates if str(getattr(record, name, None)) == str(required)]
    return "metric", []
