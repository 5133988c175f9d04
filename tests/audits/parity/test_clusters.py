"""Parity of rows that come in clusters: laws, errors, and what does not go with clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.parity.result import ParityResult
from evenhand.errors import ConfigError, DataError

METRICS = ["selection_rate", "mean_score", "tpr", "balanced_accuracy", "brier", "auc"]


def rows(clusters: int = 60, each: int = 6, seed: int = 0, *, mixed: bool = False) -> dict[str, Any]:
    """Return rows of clusters whose rows are alike."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), each)
    group = rng.integers(0, 2, len(cluster)) if mixed else cluster % 2
    score = np.clip(0.7 * rng.random(clusters)[cluster] + 0.3 * rng.random(len(cluster)), 0, 1).round(3)
    return {
        "group": np.where(group == 0, "A", "B"),
        "site": np.array(["north", "south"])[rng.integers(0, 2, len(cluster))],
        "person": np.char.add("p", cluster.astype(str)),
        "score": score,
        "outcome": (rng.random(len(cluster)) < score).astype(int),
    }


def audited(data: dict[str, Any], cluster: str | None = "person", **settings: Any) -> ParityResult:
    table = eh.Table(data, groups="group", outcome="outcome", predictions={"m": "score"}, cluster=cluster)
    return eh.parity(table, **{"metrics": METRICS, **settings})


def numbers(result: ParityResult) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return value, limits and p-value of every gap."""
    return {
        (gap.metric, gap.kind, gap.against, gap.stratum, gap.group): (gap.value, gap.low, gap.high, gap.p_value)
        for gap in result.gaps
    }


def width(record: Any) -> float:
    """Return the width of an interval."""
    assert record.low is not None
    assert record.high is not None
    return float(record.high - record.low)


def repeated(data: dict[str, Any], times: int) -> dict[str, Any]:
    return {name: np.repeat(values, times) for name, values in data.items()}


def test_repeating_rows_within_their_clusters_changes_no_limit() -> None:
    once = eh.Table(rows(), groups="group", predictions={"m": "score"}, cluster="person")
    data = repeated(rows(), 5)
    again = eh.Table(data, groups="group", predictions={"m": "score"}, cluster="person")
    first, second = (eh.parity(table, metrics="selection_rate", reference="A") for table in (once, again))
    for a, b in zip(first.gaps, second.gaps, strict=True):
        assert (b.value, b.low, b.high, b.p_value) == pytest.approx((a.value, a.low, a.high, a.p_value), rel=2e-3)


def test_rows_that_are_repeated_look_more_certain_without_clusters() -> None:
    data = repeated(rows(), 5)
    with_clusters, without = (audited(data, cluster, metrics="selection_rate") for cluster in ("person", None))
    wide, narrow = (result.get("values", group="A", metric="selection_rate") for result in (with_clusters, without))
    assert wide.value == narrow.value
    assert width(wide) > 3 * width(narrow)


def test_single_rows_as_clusters_have_nearly_the_limits_of_independent_rows() -> None:
    data = rows(600, 1)
    alone, independent = numbers(audited(data)), numbers(audited(data, None))
    assert alone.keys() == independent.keys()
    for key, (value, low, high, p) in independent.items():
        if value is None or low is None or key[1] != "difference":
            continue
        assert alone[key][:3] == pytest.approx((value, low, high), abs=0.012), key
        assert alone[key][3] == pytest.approx(p, abs=0.1), key


@pytest.mark.parametrize("mixed", [False, True])
def test_no_claim_depends_on_names_or_order(mixed: bool) -> None:
    data = rows(mixed=mixed)
    order = np.random.default_rng(9).permutation(len(data["group"]))
    shuffled = {name: values[order] for name, values in data.items()}
    shuffled["person"] = np.char.add("z", np.char.replace(shuffled["person"], "p", ""))
    found, other = (numbers(audited(part, within="site")) for part in (data, shuffled))
    assert found.keys() == other.keys()
    for key, expected in found.items():
        assert other[key] == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True), key


def test_p_is_below_alpha_exactly_where_the_interval_excludes_equality() -> None:
    for seed in range(12):
        for gap in audited(rows(24, 8, seed)).gaps:
            if gap.against != "worst_pair" and gap.low is not None and gap.high is not None and gap.p_value is not None:
                equal = 0.0 if gap.kind == "difference" else 1.0
                assert (gap.p_value < 0.05) == (gap.low > equal or gap.high < equal), gap


def test_clusters_with_both_groups_tell_a_gap_more_exactly() -> None:
    """The gap within a cluster is free of what its rows have in common."""
    rng = np.random.default_rng(1)
    level = np.repeat(rng.beta(0.5, 0.5, 80), 10)
    selected = (rng.random(800) < level).astype(int)
    person = np.repeat(np.arange(80), 10)
    crossed, nested = np.tile(["A", "B"], 400), np.where(person % 2 == 0, "A", "B")
    widths = []
    for group in (crossed, nested):
        data = {"group": group, "selected": selected, "person": person}
        table = eh.Table(data, groups="group", predictions="selected", cluster="person")
        gap = eh.parity(table, metrics="selection_rate").get("gaps", kind="difference", against="reference")
        widths.append(width(gap))
    assert widths[0] < 0.6 * widths[1]


def test_few_clusters_are_shown_and_not_compared() -> None:
    result = audited(rows(18, 10))
    value = result.get("values", group="A", metric="selection_rate")
    assert value.value is not None
    assert value.low is None
    assert value.status.id == "core.few_clusters"
    assert all(gap.value is None for gap in result.gaps)


def test_calibration_allows_for_clusters() -> None:
    data = repeated(rows(200, 5), 6)
    with_clusters, without = (audited(data, cluster).calibration for cluster in ("person", None))
    pairs = [(a, b) for a, b in zip(with_clusters, without, strict=True) if None not in (a.low, a.high, b.low, b.high)]
    assert len(pairs) > 10
    ratios = np.array([width(a) / width(b) for a, b in pairs])
    assert ratios.min() >= 1.0
    assert np.median(ratios) > 1.5


def test_custom_metrics_have_limits_by_leaving_out_clusters() -> None:
    built_in = audited(rows(), metrics="selection_rate").get("values", group="A", metric="selection_rate")
    custom = audited(rows(), metrics=None, custom={"share": lambda cells: cells.selected / cells.n})
    own = custom.get("values", group="A", metric="share")
    assert own.value == pytest.approx(built_in.value)
    assert width(own) == pytest.approx(width(built_in), rel=0.15)


def test_the_note_names_the_column_and_the_number_of_clusters() -> None:
    note = next(note for note in audited(rows()).notes if note.id == "core.clustered")
    assert note.args == {"cluster": "person", "n": 60}


def test_the_report_counts_rows_and_not_people() -> None:
    table = eh.Table(rows(), groups="group", predictions={"m": "score"}, cluster="person")
    page = eh.audit(table, parity={}).to_html()
    assert "Rows</span> 360" in page
    assert "People</span>" not in page


def test_two_audits_are_paired_by_their_clusters() -> None:
    data = rows(mixed=True)
    later = {**data, "score": np.clip(data["score"] + 0.02, 0, 1)}
    tables = [eh.Table(part, groups="group", predictions={"m": "score"}, cluster="person") for part in (data, later)]
    audits = [eh.audit(table, parity={"metrics": "mean_score"}) for table in tables]
    compared = eh.compare(*audits, tables=(tables[0], tables[1]))
    assert compared.shared == 60
    assert width(compared.changes[0]) < 0.05


class TestRefused:
    def test_a_row_without_a_cluster(self) -> None:
        data = rows()
        person = data["person"].astype(object)
        person[[3, 5]] = None
        with pytest.raises(DataError, match="'person' is missing in 2 rows"):
            audited({**data, "person": person})

    def test_an_unknown_column(self) -> None:
        with pytest.raises(DataError, match="persn"):
            audited(rows(), "persn")

    def test_bootstrap_intervals(self) -> None:
        with pytest.raises(ConfigError, match="not independent within 'person'"):
            audited(rows(), interval="bca")

    def test_an_audit_that_takes_every_row_for_another_person(self) -> None:
        table = eh.Table(rows(), groups="group", predictions={"m": "score"}, cluster="person")
        with pytest.raises(ConfigError, match="cannot allow for `cluster` 'person'"):
            eh.reliability("logistic", table, features=["score"], noise="raez-2024/all/5")
        with pytest.raises(ConfigError, match="cannot allow for `cluster` 'person'"):
            eh.audit(
                table, parity={}, reliability={"model": "logistic", "features": ["score"], "noise": "raez-2024/all/5"}
            )

    def test_an_audit_that_has_clusters_of_its_own(self) -> None:
        table = eh.Table(rows(), groups="group", cluster="person")
        with pytest.raises(ConfigError, match="by itself, through `critic`, `case`; leave `cluster` 'person' out"):
            eh.disagreement(table, decision="outcome", disagree="outcome", critic="site")

    def test_gaps_over_time(self) -> None:
        data = rows() | {"month": np.tile(["2026-01", "2026-02", "2026-03"], 120)}
        table = eh.Table(data, groups="group", predictions={"m": "score"}, cluster="person")
        with pytest.raises(ConfigError, match="compares rows as independent people"):
            eh.audit(table, parity={}, report={"period": "month"})

    def test_a_legal_profile_has_no_table(self) -> None:
        table = eh.Table(
            rows(), groups="group", predictions={"m": {"column": "score", "favourable": "selected"}}, cluster="person"
        )
        audit = eh.audit(table, parity={}, report={"profile": ["ugesp-1978"]})
        (profile,) = audit.profiles
        assert profile.tables["impact"] == ()
        assert [note.id for note in profile.notes] == ["after.clustered_counts"]
