"""Concerns: statements of a run that ask for attention, most serious first.

The sources are violated limits, alternatives shown to be fairer, established differences without a limit, gaps that
have grown over time, indicators of legal profiles, and limits that the data cannot judge. Every concern follows from a
finding or record by a fixed rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from evenhand.after.profiles import PROFILES
from evenhand.after.profiles.result import ProfileResult
from evenhand.after.records import Drift
from evenhand.audits import REGISTRY
from evenhand.core.findings import Finding
from evenhand.core.thresholds import UNDECIDED, is_least, size_of_gap
from evenhand.messages import Argument
from evenhand.report.frequencies import GroupValues, group_values, lead_of, speaker_of, status_quo_values, told_values
from evenhand.report.front import distance, is_established, leaves_pair_open, place_of
from evenhand.report.spans import span_of
from evenhand.report.wording import PageWording
from evenhand.table.roles import TIMES

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

Certainty = Literal["yes", "differs", "possibly", "cannot_tell", "not_shown"]
"""The certainty of a problem: shown, a difference without a limit, possible, undecidable, and not found."""

_SERIOUS: dict[Certainty, int] = {"yes": 0, "possibly": 1, "differs": 1, "cannot_tell": 2, "not_shown": 3}
"""The rank of concerns; equally serious concerns start with limits and end with legal profiles."""

_KINDS = {"difference": "gap", "ratio": "ratio"}


@dataclass(frozen=True)
class Concern:
    """A statement that asks for attention.

    Parameters
    ----------
    certainty : the certainty of a problem.
    write : the function that returns the sentence; it is called only for concerns to be shown.
    finding : the finding behind the concern, or None.
    drift : the gap that has grown, or None.
    """

    certainty: Certainty
    write: Callable[[], str]
    finding: Finding | None = None
    drift: Drift | None = None

    @property
    def sentence(self) -> str:
        """The sentence that describes the concern."""
        return self.write()

    @property
    def place(self) -> tuple[object, ...] | None:
        """The comparison of the finding, which is the same for several limits on the same values."""
        return None if self.finding is None else place_of(self.finding)


def concerns(audit: Audit, wording: PageWording) -> list[Concern]:
    """Return all concerns of a run, most serious first."""
    everything = [
        *_limits(audit, wording),
        *_alternatives(audit, wording),
        *_drifts(audit, wording),
        *_differences(audit, wording),
        *_indicators(audit, wording),
    ]
    return sorted(everything, key=lambda concern: _SERIOUS[concern.certainty])


def values_line(audit: Audit, finding: Finding, wording: PageWording) -> str:
    """Return the values of a finding's groups as a clause, or its headline if it has no values."""
    groups = group_values(audit, finding)
    if (quo := status_quo_values(audit, finding)) is not None:
        return _under_the_status_quo(finding, quo, wording)
    if groups is None:
        return wording.headline(finding).rstrip(".")
    return wording.say(
        "values", "answer", lead=lead_of(audit, finding, groups, wording), groups=told_values(groups, wording)
    )


def _under_the_status_quo(finding: Finding, quo: GroupValues, wording: PageWording) -> str:
    """Return the groups' values under the status quo as a clause, in the audit's own words if it has any."""
    outcome, groups = finding.arguments.get("outcome"), told_values(quo, wording, counted=False)
    words: dict[str, Argument] = {"grouping": finding.grouping, "groups": groups, "outcome": outcome}
    catalogue, own = REGISTRY[finding.audit].messages, f"quo_{quo.metric.name}"
    if outcome is not None and catalogue is not None and own in catalogue:
        return wording.message(catalogue(own, **words))
    key = "status_quo_values" if outcome is None else "status_quo_values_of"
    return wording.say(key, "answer", **words, title=quo.metric.title_in_sentence)


def _limits(audit: Audit, wording: PageWording) -> Iterator[Concern]:
    """Yield violated limits, possibly violated limits, and limits that cannot be judged.

    Violated limits come before undecided ones, and undecided limits on established differences before other undecided
    ones. Then shares come before other numbers, such as mean scores, and larger gaps before smaller ones.
    """
    judged = (finding for finding in audit.findings if finding.threshold is not None)
    for finding in sorted(judged, key=_severity):
        if finding.verdict == "does_not_meet":
            yield Concern("yes", partial(_limit_sentence, "broken", audit, finding, wording), finding)
        elif finding.verdict == "not_confirmed":
            yield Concern("possibly", partial(_limit_sentence, "not_confirmed", audit, finding, wording), finding)
        elif finding.verdict == "insufficient_evidence" and _is_value_beyond(finding):
            yield Concern("possibly", partial(_limit_sentence, "beyond", audit, finding, wording), finding)
        elif finding.verdict == "insufficient_evidence":
            yield Concern("cannot_tell", partial(_limit_sentence, "open", audit, finding, wording), finding)


def _severity(finding: Finding) -> tuple[bool, bool, bool, float]:
    """Return the sort key of limits, the most severe first."""
    is_open = finding.verdict == "insufficient_evidence"
    return is_open, is_open and not is_established(finding), finding.unit != "share", -distance(finding)


def _is_value_beyond(finding: Finding) -> bool:
    """Return whether a value lies beyond its limit; for a range of values, whether its nearer end does."""
    if finding.value is None or finding.limit is None or finding.threshold is None:
        return False
    at_least = is_least(finding.threshold)
    nearer = finding.upper if at_least else finding.lower
    value, _, _ = size_of_gap(finding.kind, finding.value if nearer is None else nearer, None, None)
    return (value or 0.0) < finding.limit if at_least else (value or 0.0) > finding.limit


def _limit_sentence(key: str, audit: Audit, finding: Finding, wording: PageWording) -> str:
    values, limit = values_line(audit, finding, wording), wording.limit(finding)
    kind = "improvement" if finding.is_limit else _KINDS.get(finding.kind or "", "value")
    words: dict[str, Argument] = {"what": wording.say(f"the_{kind}", "answer"), "amount": wording.amount(finding)}
    own = f"{key}_{kind}" if key == "broken" and kind in ("value", "improvement") else key
    sentence = wording.say(own, "answer", values=values, limit=limit, model=finding.model, **words)
    if finding.verdict in UNDECIDED and is_established(finding):
        return f"{sentence} {wording.say('yet_different', 'answer')}"
    if finding.verdict == "does_not_meet" and finding.reason is not None:  # the condition of its limits
        return f"{sentence} {wording.message(finding.reason)}"
    return sentence


def shown_alternatives(audit: Audit) -> list[Finding]:
    """Return the findings on remedies that show a fairer alternative."""
    remedies = {name for name, descriptor in REGISTRY.items() if descriptor.remedy}
    shown = [finding for finding in audit.findings if finding.audit in remedies and finding.is_limit]
    return [finding for finding in shown if finding.verdict in ("does_not_meet", "no_threshold")]


def _alternatives(audit: Audit, wording: PageWording) -> Iterator[Concern]:
    """Yield the alternatives shown to be fairer, unless a limit judges them."""
    for finding in shown_alternatives(audit):
        if finding.verdict == "no_threshold":
            yield Concern("yes", partial(_alternative, audit, finding, wording), finding)


def _alternative(audit: Audit, finding: Finding, wording: PageWording) -> str:
    """Return the sentence on a fairer alternative, after the status quo's values if they are known."""
    headline = wording.headline(finding)
    quo = status_quo_values(audit, finding)
    return headline if quo is None else f"{values_line(audit, finding, wording)}. {headline}"


def _differences(audit: Audit, wording: PageWording) -> Iterator[Concern]:
    """Yield established differences not covered by a violated or undecided limit, shares before other numbers.

    Then come differences between two established groups, differences in metrics without a caution on other influences,
    and larger differences.
    """
    judged = {place_of(f) for f in audit.findings if f.verdict in ("does_not_meet", *UNDECIDED)}
    found = [finding for finding in audit.findings if is_established(finding) and place_of(finding) not in judged]
    met = {place_of(finding): finding for finding in found if finding.verdict == "meets"}
    found.sort(
        key=lambda finding: (
            finding.unit != "share",
            leaves_pair_open(finding),
            _moves_with_more(audit, finding),
            -distance(finding),
        )
    )
    told = set()
    for finding in found:
        if place_of(finding) in told:
            continue
        told.add(place_of(finding))
        limited = met.get(place_of(finding))
        yield Concern("differs", partial(_difference, audit, finding, limited, wording), limited or finding)


def _moves_with_more(audit: Audit, finding: Finding) -> bool:
    """Return whether the audit has a caution on other influences on the metric, such as prevalence on kappa."""
    catalogue = REGISTRY[finding.audit].messages if finding.audit in REGISTRY else None
    metric = audit.results[finding.audit].metrics[finding.metric]
    return catalogue is not None and "moves_with" in catalogue and bool(metric.moves_with)


def _difference(audit: Audit, finding: Finding, limited: Finding | None, wording: PageWording) -> str:
    """Return a sentence with the values of different groups, and whether they meet a limit or have none."""
    values = values_line(audit, finding, wording)
    limit = None if limited is None else wording.limit(limited)
    free = "_free" if limit is None and any(f.threshold is not None for f in audit.findings) else ""
    met = "_met_over_time" if _has_changed(audit, finding) else "_met"
    sentence = wording.say(f"established{free if limit is None else met}", "answer", values=values, limit=limit)
    return f"{sentence} {wording.say('pair_open', 'answer')}" if leaves_pair_open(finding) else sentence


def _has_changed(audit: Audit, finding: Finding) -> bool:
    """Return whether a gap has grown over time in the comparison of a finding."""
    place = finding.audit, finding.model, finding.grouping, finding.metric
    return any((d.audit, d.model, d.grouping, d.metric) == place for d in _grown(audit))


def _grown(audit: Audit) -> list[Drift]:
    """Return the gaps that have grown significantly."""
    drifts = (drift for extra in audit.extras for drift in extra.tables.get("drifts", ()) if drift.drifted)
    return [drift for drift in drifts if abs(drift.since or 0.0) > abs(drift.before or 0.0)]


def _drifts(audit: Audit, wording: PageWording) -> Iterator[Concern]:
    """Yield the gaps that have grown significantly, the clearest first and intersections of groupings last."""
    for drift in sorted(_grown(audit), key=lambda drift: (TIMES in drift.grouping, -_distance_from_no_change(drift))):
        yield Concern("yes", partial(_drift_sentence, audit, drift, wording), drift=drift)


def _distance_from_no_change(drift: Drift) -> float:
    return max(drift.low or 0.0, -(drift.high or 0.0))


def _drift_sentence(audit: Audit, drift: Drift, wording: PageWording) -> str:
    """Return a sentence on a gap since a change and before, in the audit's own words if it has any.

    For a change that is over, the sentence has its periods and the gap in all other periods.
    """
    descriptor, span = REGISTRY[drift.audit], span_of(audit, drift, wording)
    since, before = drift.since or 0.0, span.others if span.is_over else drift.before or 0.0
    lower, higher = (drift.reference, drift.group) if since > 0 else (drift.group, drift.reference)
    ending = "_turned" if since * before < 0 else ""
    words: dict[str, Argument] = {
        "period": span.name if span.is_over else wording.period(drift.changed_from),
        "title": descriptor.metrics[drift.metric].title_in_sentence,
        "lower": lower,
        "higher": higher,
        "model": speaker_of(audit, drift.model),
        "grouping": drift.grouping,
        "since": abs(since),
        "before": abs(before),
        "selects": audit.config.data["predictions"][drift.model].get("selected_word", "selects"),
    }
    start = "during" if span.is_over else "since"
    own = f"{start}_{drift.metric}{ending}"
    if descriptor.messages is not None and own in descriptor.messages:
        return wording.message(descriptor.messages(own, **words))
    return wording.say(f"{start}{ending}", "answer", **words)


def _indicators(audit: Audit, wording: PageWording) -> Iterator[Concern]:
    """Yield the indicators that legal profiles raise."""
    for profile in audit.profiles:
        if profile_line(profile, wording):
            yield Concern("possibly", partial(profile_line, profile, wording))


def profile_line(profile: ProfileResult, wording: PageWording) -> str:
    """Return a sentence with the number of flagged groups and the clearest one; empty if none is flagged."""
    flagged = [row for row in profile.tables.get("impact", ()) if row.is_flagged]
    if not flagged:
        return ""
    worst = min(flagged, key=lambda row: (row.ratio if row.ratio is not None else 1.0, row.standard_deviations or 0.0))
    groups = sum(row.group != row.highest for row in profile.tables["impact"])
    return wording.say(
        "indicators",
        "answer",
        profile=PROFILES[profile.name].title,
        n=len(flagged),
        total=groups,
        group=wording.label(worst.group),
        highest=wording.label(worst.highest),
        grouping=worst.grouping,
        ratio=worst.ratio,
    )
