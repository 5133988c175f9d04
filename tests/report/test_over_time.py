"""Gaps over time: limits that hold however often one looks, and whether a gap has drifted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import evenhand as eh
from evenhand.core.display import Figure
from evenhand.errors import ConfigError
from evenhand.report.drift import _order_notes, in_time
from evenhand.report.front import drift_in_short
from evenhand.report.languages import language
from evenhand.report.page import notes, render
from evenhand.stats.intervals import clopper_pearson, mover_difference
from evenhand.stats.sequences import gap_drift, period_gaps, rate_sequence, spent


def months(drift: float = 0.0, *, seed: int = 0, rows: int = 4000) -> dict[str, Any]:
    """Return people of eight months; the women's rate falls from the fifth on."""
    rng = np.random.default_rng(seed)
    month, sex = rng.integers(1, 9, rows), rng.choice(["F", "M"], rows)
    rate = 0.5 - drift * ((month > 4) & (sex == "F"))
    labels = [f"2026-{number:02d}" for number in month]
    return {"month": labels, "sex": sex.tolist(), "hired": (rng.random(rows) < rate).astype(int).tolist()}


def over_time(data: dict[str, Any], **report: Any) -> eh.Audit:
    table = eh.Table(data, groups="sex", predictions={"screen": "hired"}, favourable="selected")
    return eh.audit(table, parity={}, report={"period": "month", **report})


def test_the_martingale_of_a_rate_is_one_on_average() -> None:
    """So that it ever reaches 1 / alpha at most alpha times: by brute force over all outcomes of 12 people."""
    p, n = 0.3, 12
    s = np.arange(n + 1)
    limits = rate_sequence(s, n, 0.95)
    missed = (limits.low > p) | (limits.high < p)
    assert binom.pmf(s, n, p)[missed].sum() <= 0.05
    from scipy.special import beta

    assert (binom.pmf(s, n, p) * beta(1 + s, 1 + n - s) / (p**s * (1 - p) ** (n - s))).sum() == pytest.approx(1.0)


def test_limits_at_all_times_contain_those_of_one_time() -> None:
    s, n = np.arange(0, 101, 5), 100
    wide, narrow = rate_sequence(s, n), clopper_pearson(s / n, n)
    assert (wide.low <= narrow.low + 1e-9).all()
    assert (wide.high >= narrow.high - 1e-9).all()
    assert (wide.low[0], wide.high[-1]) == (0.0, 1.0)
    mirrored = rate_sequence(n - s, n)
    assert wide.low == pytest.approx(1 - mirrored.high)


def test_what_looks_spend_adds_up_to_alpha() -> None:
    assert spent(0.05, np.arange(1, 100_000)).sum() == pytest.approx(0.05, abs=1e-6)


def test_the_second_period_is_compared_by_mover() -> None:
    a, n, b, m = [30, 55], [100, 120], [40, 50], [110, 130]
    change, limits = gap_drift(a, n, b, m, 0.05)
    p, q = np.array(a) / n, np.array(b) / m
    gaps = mover_difference(p, clopper_pearson(p, n, 0.975), q, clopper_pearson(q, m, 0.975))
    both = mover_difference(
        (p - q)[1], type(gaps)(gaps.low[1], gaps.high[1]), (p - q)[0], type(gaps)(gaps.low[0], gaps.high[0])
    )
    assert (change[1], limits.low[1], limits.high[1]) == pytest.approx(
        ((p - q)[1] - (p - q)[0], float(both.low), float(both.high))
    )
    assert np.isnan(change[0])


def test_the_other_way_round_every_change_has_the_other_sign_and_an_empty_period_is_skipped() -> None:
    a, n, b, m = [30, 0, 55, 60], [100, 0, 120, 90], [40, 5, 50, 20], [110, 10, 130, 80]
    there, back = gap_drift(a, n, b, m, 0.05), gap_drift(b, m, a, n, 0.05)
    assert np.isnan(there[0][:2]).all()
    assert there[0][2:] == pytest.approx(-back[0][2:])
    assert there[1].low[2:] == pytest.approx(-back[1].high[2:])
    assert np.isnan(period_gaps(a, n, b, m, 0.05)[0][1])


def test_a_drift_is_told_and_chance_is_not(tmp_path: Path) -> None:
    audit = over_time(months(0.35))
    (drift,) = audit.extras[0].tables["drifts"]
    assert drift.drifted
    assert drift.first_period >= "2026-05"
    assert "has drifted beyond chance" in audit.sections()["over_time"].notes[0]
    audit.save(tmp_path)
    assert eh.Audit.load(tmp_path).to_json() == audit.to_json()
    (calm,) = over_time(months(0.0)).extras[0].tables["drifts"]
    assert not calm.drifted
    assert "no drift" in calm.headline


def test_a_drift_is_named_where_it_is_first_seen_and_told_on_the_front_page() -> None:
    audit = over_time(months(0.35))
    (drift,) = audit.extras[0].tables["drifts"]
    assert f"points before {drift.first_period} and " in drift.headline
    (english,), (german,) = drift_in_short(audit), drift_in_short(audit, language("de"))
    assert english in render(audit)
    assert english.startswith("The gap in selection rate between M and F, by sex (screen), has drifted over time")
    assert drift.first_period in german
    assert "zuerst zu sehen" in german
    assert drift_in_short(over_time(months(0.0))) == []


def test_months_come_by_the_calendar_and_names_without_an_order_are_told() -> None:
    assert in_time(["Apr", "Dec", "Feb", "Jan"]) == ("Jan", "Feb", "Apr", "Dec")
    assert in_time(["Friday", "Monday", "Sunday"]) == ("Monday", "Friday", "Sunday")
    assert in_time(["2026-01", "2026-02"]) == ("2026-01", "2026-02")
    assert in_time(["Mai", "März"]) == ("März", "Mai")
    data = months(rows=400)
    assert over_time(data).extras[0].notes == ()
    data["month"] = ["spring" if month < "2026-05" else "autumn" for month in data["month"]]
    (note,) = over_time(data).extras[0].notes
    assert "alphabetical order, from autumn to spring" in note


@pytest.mark.parametrize(
    "periods",
    [
        ("Q4 2025", "Q1 2026", "Q2 2026"),
        ("2025-Q4", "2026-Q1"),
        ("2025 Q4", "2026Q1"),
        ("H2 2025", "H1 2026"),
        ("Dec 2025", "January 2026", "Feb. 2026"),
        ("2025 Sept", "2026 Jan"),
        ("12/2025", "1/2026", "10/2026"),
        ("2025.12", "2026.01"),
        ("2025-W52", "2026-W05", "2026W10"),
        ("KW 52 2025", "KW 5 2026"),
        ("2025-12-31", "2026-01-01"),
        ("31.12.2025", "1.2.2026"),
        ("9", "10", "100"),
        ("Q1", "Q2"),
    ],
    ids=" ".join,
)
def test_periods_that_are_named_by_the_calendar_come_in_their_order_and_need_no_remark(
    periods: tuple[str, ...],
) -> None:
    assert in_time(sorted(periods)) == periods
    assert in_time(sorted(periods, reverse=True)) == periods
    assert list(_order_notes(in_time(periods))) == []


@pytest.mark.parametrize("periods", [("1st", "10th", "2nd"), ("Jan 2026", "Q1 2026"), ("Mon 2026", "Tue 2026")])
def test_periods_in_no_order_that_is_known_are_told(periods: tuple[str, ...]) -> None:
    assert in_time(periods) == periods
    assert len(list(_order_notes(periods))) == 1


def test_the_change_is_that_of_the_period_where_a_drift_is_first_seen() -> None:
    """The sentence names that period; the last one beyond chance may show another change."""
    audit = over_time(months(0.35))
    (drift,) = audit.extras[0].tables["drifts"]
    gaps = [row for row in audit.extras[0].tables["periods"] if row.reference is not None]
    (first,) = [row for row in gaps if row.period == drift.first_period]
    assert drift.period > drift.first_period
    assert drift.change == pytest.approx(first.gap - drift.before)
    assert drift.since == pytest.approx(0.35, abs=0.06)
    assert drift.low <= drift.change <= drift.high


def test_the_section_over_time_speaks_german() -> None:
    german = language("de")
    data = {**months(0.35), "month": [None if month == "2026-08" else month for month in months(0.35)["month"]]}
    for audit, words in (
        (over_time(data), "Prozentpunkte vor 2026-05 und +35,7 von da an; er hat sich"),
        (over_time(months(0.0)), "Der Abstand hat sich nach month nicht über den Zufall hinaus verändert."),
    ):
        section = audit.sections()["over_time"]
        told = notes(audit, german, section)
        assert words in told[0][0]
        assert all(translated for _, translated in told)
        assert notes(audit, language(), section) == [(note, False) for note in section.notes]
        spoken = replace(audit, run={**audit.run, "language": "de"})
        assert f'<p class="note" lang="de">{told[0][0]}</p>' in render(spoken)


def test_the_rows_of_every_period_add_up() -> None:
    data = months(0.1)
    rows = over_time(data).extras[0].tables["periods"]
    assert sum(row.n for row in rows) == len(data["sex"])
    last = [row for row in rows if row.period == "2026-08" and row.group == "F"]
    women = np.array(data["sex"]) == "F"
    assert last[0].mean == pytest.approx(np.array(data["hired"])[women].mean())
    turned = {name: values[::-1] for name, values in data.items()}
    assert over_time(turned).to_json() == over_time(data).to_json()


@pytest.mark.parametrize(
    ("report", "match"),
    [
        ({"period": "moth"}, "`period` column 'moth' .*did you mean 'month'"),
        ({"period": "sex"}, "is a group column already"),
        ({"period": "year"}, "one value only"),
    ],
)
def test_a_period_that_cannot_be_is_refused(report: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        over_time({**months(rows=400), "year": ["2026"] * 400}, **report)


def test_the_panels_that_matter_are_drawn_and_the_others_named() -> None:
    """Of 13 panels the drifted one comes first, however late it stands in the table."""
    rng = np.random.default_rng(3)
    month, sex = rng.integers(1, 4, 3000), rng.choice(["F", "M"], 3000)
    models = {f"m{number:02d}": rng.integers(0, 2, 3000) for number in range(13)}
    models["m12"] = np.where((month == 3) & (sex == "M"), 0, models["m12"])
    table = eh.Table({"month": month, "sex": sex, **models}, groups="sex", predictions=[*models])
    audit = eh.audit(table, parity={"metrics": "selection_rate"}, report={"period": "month"})
    figure = audit.sections()["over_time"].parts[0]
    assert isinstance(figure, Figure)
    assert len(figure.charts) == 12
    assert figure.charts[0].title == "m12: selection rate"
    assert figure.caption.count("selection rate") == 1
    assert figure.shows == "1 of 13 gaps by sex has drifted beyond chance."
    assert figure.sizes == {"F": int((sex == "F").sum()), "M": int((sex == "M").sum())}
    assert figure.charts[0].to_dict()["title"] == figure.charts[0].title
