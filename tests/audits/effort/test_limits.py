"""Limits at another confidence come from what was compared: the same as a fresh audit's, and nothing runs twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.effort import EffortSpec, audit, direction, estimate, group_means, large_table
from evenhand.audits.effort.audit import run
from evenhand.core.estimates import Estimate
from evenhand.stats import pairs

STEPS = ["x", "y", "z"]
THRESHOLDS = [
    {"metric": "eaif", "min": 0.99},
    {"metric": "eagf", "min": 0.99},
    {"metric": "reversed_pairs", "max": 0.01, "of": "value"},
    {"metric": "reversed_pairs", "max": 0.01, "of": "gap"},
]
ERRORS = {"by": "g", "rates": {"a": 10, "b": 20, "c": 30}, "errors": {"a": 2, "b": 3}}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"thresholds": THRESHOLDS},
    "two weights": {"thresholds": THRESHOLDS, "weights": [0.3, 0.7]},
    "uncertain rates": {"thresholds": THRESHOLDS, "inertia": {"sources": {"one": ERRORS}, "imputations": 4}},
    "sampled pairs": {"thresholds": THRESHOLDS, "method": "sampled"},
}


def table(n: int = 90) -> eh.Table:
    rng = np.random.default_rng(0)
    steps = dict(zip(STEPS, rng.gamma(3.0, 1.0, (3, n)), strict=True))
    scores = {"m": rng.random(n), "k": rng.random(n) ** 2, "flat": np.full(n, 0.5)}
    kinds = {name: {"column": name, "kind": "score", "favourable": "selected"} for name in scores}
    return eh.Table({**steps, **scores, "g": rng.choice(["a", "b", "c"], n)}, groups="g", predictions=kinds)


def spec(**settings: Any) -> EffortSpec:
    return EffortSpec.parse({"trajectory": STEPS, "scale": 10, "width": 0.5, **settings}, "here")


def estimates(settings: EffortSpec) -> list[Estimate[Any]]:
    return [one for claim in run(table(), settings).claims for one in claim.estimates]


IN_MEMORY = [(name, False) for name in SETTINGS]
IN_ENGINE = [("plain", True), ("two weights", True)]


@pytest.mark.parametrize(("name", "engine"), [*IN_MEMORY, *IN_ENGINE])
def test_limits_are_those_of_a_fresh_audit(name: str, engine: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = spec(**SETTINGS[name])
    if engine:
        settings = settings.model_copy(update={"thresholds": settings.thresholds[:2]})
        monkeypatch.setattr(audit, "MOST_IN_MEMORY", 0)
    asked = estimates(settings)
    for confidence in (0.8, 0.999):
        fresh = estimates(settings.with_confidence(confidence))
        assert [one.at(confidence) for one in asked] == [one.record for one in fresh]
    widths = [[_width(one.at(level)) for level in (0.8, 0.999)] for one in asked]
    assert any(wide > narrow for narrow, wide in widths)
    assert all(wide >= narrow for narrow, wide in widths)


def _width(record: Any) -> float:
    return (record.high or 0.0) - (record.low or 0.0)


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often the kernels run."""
    calls: Counter[str] = Counter()
    kernels: list[tuple[Any, str]] = [
        (estimate, "individual_fairness"),
        (estimate, "compare"),
        (direction, "count_reversals"),
        (group_means, "group_means"),
        (group_means, "equality_p_values"),
        (pairs, "individual_fairness_counts"),
        (large_table.LargeTable, "bin_cells"),
    ]
    for place, name in kernels:
        kernel = getattr(place, name)

        def count(*given: Any, kernel: Any = kernel, name: str = name, **options: Any) -> Any:
            calls[name] += 1
            return kernel(*given, **options)

        monkeypatch.setattr(place, name, count)
    return calls


@pytest.mark.parametrize("name", ["plain", "uncertain rates"])
def test_thresholds_run_no_kernel_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch)
    without = {key: value for key, value in SETTINGS[name].items() if key != "thresholds"}
    eh.effort(table(), trajectory=STEPS, scale=10, width=0.5, **without)
    once = Counter(calls)
    calls.clear()
    result = eh.effort(table(), trajectory=STEPS, scale=10, width=0.5, **SETTINGS[name])
    assert calls == once
    assert sum(finding.verdict == "does_not_meet" for finding in result.findings) > 1


def test_thresholds_read_a_large_table_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST_IN_MEMORY", 0)
    calls = counted(monkeypatch)
    eh.effort(
        table(), trajectory=STEPS, scale=10, width=0.5, thresholds=[*THRESHOLDS[:2], {"metric": "eaif", "min": 1}]
    )
    assert (
        calls["individual_fairness_counts"] == 9
    )  # of three models: spread, fairness, and that of each pair at equal spread
    assert calls["bin_cells"] == 3


def test_a_difference_is_turned_with_its_limits() -> None:
    between = [one for one in estimates(spec()) if getattr(one.record, "model_reference", None) is not None]
    assert between
    for one in between:
        assert one.record.value >= 0
        for level in (0.5, 0.95):
            found = one.at(level)
            assert found is not None
            assert (found.model, found.model_reference, found.value) == (
                one.record.model,
                one.record.model_reference,
                one.record.value,
            )
            assert found.low is None or found.low <= found.value <= found.high
