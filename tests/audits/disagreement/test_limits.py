"""Limits at another confidence come from one bootstrap: the same as a fresh audit's, and nothing is drawn twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import evenhand as eh
from evenhand.audits.disagreement import DisagreementSpec, audit, critics, estimate
from evenhand.audits.disagreement.audit import run
from evenhand.core.estimates import Estimate
from evenhand.stats.feedback import compare, inference

from .conftest import LIMITS, SETTINGS, Frame, make_answers

WAYS: dict[str, dict[str, Any]] = {
    "bounds": {},
    "kinds": {"stakeholder": "kind", "answers": {"truth": "own"}},
    "directions": {"disagree": None, "answer": "answer", "answers": {"labels": [1, 2, 3]}},
    "published": {"bounds": "published"},
    "all cases": {"answers": {"cases": "all"}},
    "a small group": {"min_count": 60},
}


def settings(way: str, **more: Any) -> dict[str, Any]:
    chosen = {**SETTINGS, **WAYS[way], **more}
    return {name: value for name, value in chosen.items() if value is not None}


def estimates(data: Frame, spec: DisagreementSpec) -> list[Estimate[Any]]:
    draft = run(eh.Table(data, groups="race"), spec)
    return [one for claim in draft.claims for one in claim.estimates]


QUICK = [way for way in WAYS if way != "published"]


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("way", [*QUICK, pytest.param("published", marks=pytest.mark.slow)])
def test_limits_are_those_of_a_fresh_audit(way: str, labels: int) -> None:
    data = make_answers(labels)
    options: dict[str, Any] = {"answers": {"labels": [1, 2]}} if way == "directions" and labels == 2 else {}
    spec = DisagreementSpec.parse(settings(way, **options), "here")
    asked = [one for one in estimates(data, spec) if one.limits is not None]
    for confidence in (0.8, 0.999):
        fresh = [one for one in estimates(data, spec.with_confidence(confidence)) if one.limits is not None]
        assert [one.at(confidence) for one in asked] == [one.record for one in fresh]
    widths = [[_width(one.at(level)) for level in (0.8, 0.999)] for one in asked]
    assert way == "a small group" or any(wide > narrow for narrow, wide in widths)
    assert all(wide >= narrow - 1e-12 for narrow, wide in widths)


def _width(record: Any) -> float:
    return (record.high or 0.0) - (record.low or 0.0)


def test_thresholds_draw_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    kernels: list[tuple[Any, str]] = [
        (audit, "gather"),
        (estimate, "gap_intervals"),
        (estimate, "crossed_draws"),
        (inference, "crossed_draws"),
        (compare, "crossed_draws"),
        (critics, "compare_critics"),
    ]
    for place, name in kernels:
        kernel = getattr(place, name)

        def count(*given: Any, kernel: Any = kernel, name: str = f"{place.__name__}.{name}", **options: Any) -> Any:
            calls[name] += 1
            return kernel(*given, **options)

        monkeypatch.setattr(place, name, count)
    table = eh.Table(make_answers(), groups="race")
    eh.disagreement(table, **settings("kinds"))
    once = Counter(calls)
    assert once["evenhand.audits.disagreement.audit.gather"] == 1
    calls.clear()
    broken = [{**limit, "max": 0.001} for limit in LIMITS]
    judged = eh.disagreement(table, **settings("kinds", thresholds=broken))
    assert calls == once
    asked = [f for f in judged.findings if f.verdict == "does_not_meet" or (f.reason and "widened" in f.reason.text)]
    assert asked  # limits that are broken alone are asked for at the stricter level of all three


def test_a_comparison_of_kinds_has_limits_at_any_confidence() -> None:
    spec = DisagreementSpec.parse(settings("kinds"), "here")
    compared = [one for one in estimates(make_answers(), spec) if one.record.against == "stakeholder" and one.limits]
    assert compared
    for one in compared:
        assert one.limits is not None
        narrow, wide = one.limits(0.5), one.limits(0.99)
        assert wide.low < narrow.low <= one.record.value <= narrow.high < wide.high
        assert one.record.value >= 0  # the kind that disagrees more comes first
