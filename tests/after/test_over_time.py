"""Gaps over time: limits that hold however often one looks, and whether a gap has drifted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import evenhand as eh
from evenhand.after.drift import _clearest_period, _drift, _holm_adjusted_drifts, _order_notes, in_time
from evenhand.audits.parity.metrics import METRICS
from evenhand.core.capabilities import GroupSeries
from evenhand.core.display import Figure
from evenhand.errors import ConfigError
from evenhand.report.answer import answer
from evenhand.report.page import render
from evenhand.report.wording import page_wording
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


def of_pooled(a: Any, n: Any, b: Any, m: Any, level: float) -> tuple[float, float, float]:
    """Return the change between two counts of each group, and its limits by MOVER."""
    a, n, b, m = (np.array(part) for part in (a, n, b, m))
    p, q = a / n, b / m
    gaps = mover_difference(p, clopper_pearson(p, n, 1 - level), q, clopper_pearson(q, m, 1 - level))
    old, new = (type(gaps)(gaps.low[at], gaps.high[at]) for at in (0, 1))
    both = mover_difference((p - q)[1], new, (p - q)[0], old)
    return (p - q)[1] - (p - q)[0], float(both.low), float(both.high)


def test_the_second_period_is_compared_by_mover() -> None:
    found = gap_drift([30, 55], [100, 120], [40, 50], [110, 130], 0.05)
    assert (found.look.tolist(), found.start.tolist()) == ([1], [1])
    told = (found.change[0], found.limits.low[0], found.limits.high[0])
    assert told == pytest.approx(of_pooled([30, 55], [100, 120], [40, 50], [110, 130], 0.025))


def test_periods_of_one_size_are_compared_by_their_counts_together() -> None:
    """At look 4, change in the third period: the last 3 against the first 2, at alpha / (k² s (s + 1))."""
    a, b = np.array([30, 34, 50, 60, 55]), np.array([40, 44, 41, 39, 45])
    found = gap_drift(a, [100] * 5, b, [130] * 5, 0.05)
    (at,) = np.flatnonzero((found.look == 4) & (found.start == 2))
    counts = (a[:2].sum(), a[2:].sum()), (200, 300), (b[:2].sum(), b[2:].sum()), (260, 390)
    told = (found.change[at], found.limits.low[at], found.limits.high[at])
    assert told == pytest.approx(of_pooled(*counts, 0.05 / (16 * 3 * 4)))
    assert sum(1 / (16 * s * (s + 1)) for s in range(1, 5)) == pytest.approx(1 / (4 * 5))  # what the look may spend


def test_the_other_way_round_every_change_has_the_other_sign_and_an_empty_period_is_skipped() -> None:
    a, n, b, m = [30, 0, 55, 60], [100, 0, 120, 90], [40, 5, 50, 20], [110, 10, 130, 80]
    there, back = gap_drift(a, n, b, m, 0.05), gap_drift(b, m, a, n, 0.05)
    assert (there.look.tolist(), there.start.tolist()) == ([2, 3, 3], [2, 2, 3])
    assert there.change == pytest.approx(-back.change)
    assert there.limits.low == pytest.approx(-back.limits.high)
    assert np.isnan(period_gaps(a, n, b, m, 0.05)[0][1])
    assert gap_drift([3], [5], [4], [6], 0.05).look.size == 0


COLLAPSE = (
    [18, 22, 27, 20, 24, 18, 2, 1, 1, 5, 4, 2],
    [67, 58, 54, 57, 59, 50, 53, 63, 58, 76, 51, 56],
    [67, 45, 57, 40, 58, 48, 51, 48, 48, 57, 54, 36],
    [149, 119, 126, 121, 129, 114, 143, 149, 119, 138, 145, 130],
)
"""A group's rate falls from 37 to 4 % in the seventh month and stays there."""


def test_a_collapse_that_lasts_is_told_among_48_gaps() -> None:
    """No month alone differs enough from those before it; the months since then together do."""
    found = gap_drift(*COLLAPSE, 0.05 / 48)
    assert (found.nearest[found.start == found.look] <= 0).all()
    assert found.look[found.nearest > 0].min() == 7
    months = [f"2025-{month:02d}" for month in range(1, 13)]
    one = GroupSeries(
        "m", "g", METRICS["selection_rate"], "b", "a", *map(np.array, (COLLAPSE[1], COLLAPSE[0], *COLLAPSE[:1:-1]))
    )
    gap = one.hits / one.n - one.other_hits / one.other_n
    drift = _drift("parity", one, months, found)
    assert drift.drifted
    assert (drift.first_period, drift.changed_from, drift.changed_to) == ("2025-08", "2025-07", "2025-12")
    assert drift.since == pytest.approx(gap[6:].mean(), abs=0.01)
    assert drift.before is not None
    assert drift.change == pytest.approx(gap[6:].mean() - drift.before, abs=0.01)
    assert drift.headline.id == "after.gap_drifted"
    assert "from then to 2025-12" in drift.headline.text


def test_gaps_are_taken_together_by_holm() -> None:
    """One that has drifted clearly leaves more of alpha to the other."""

    def series(hits: list[int]) -> GroupSeries:
        counts = [np.array(part) for part in ([200] * 2, hits, [200] * 2, [100] * 2)]
        return GroupSeries("m", "g", METRICS["selection_rate"], "b", "a", *counts)

    def shown(*pair: list[int]) -> list[bool]:
        return [bool((found.nearest > 0).any()) for found in _holm_adjusted_drifts([*map(series, pair)], 0.05)]

    clear, close, calm = [100, 180], [100, 133], [100, 100]
    assert shown(clear, close) == [True, True]
    assert shown(calm, close) == [False, False]


def test_a_drift_is_told_and_chance_is_not(tmp_path: Path) -> None:
    audit = over_time(months(0.35))
    (drift,) = audit.extras[0].tables["drifts"]
    assert drift.drifted
    assert drift.first_period >= "2026-05"
    assert audit.sections()["over_time"].notes[0].id == "after.gap_drifted"
    audit.save(tmp_path)
    assert eh.Audit.load(tmp_path).to_json() == audit.to_json()
    (calm,) = over_time(months(0.0)).extras[0].tables["drifts"]
    assert not calm.drifted
    assert calm.headline.id == "after.no_drift_shown"


def test_a_drift_is_named_where_it_is_first_seen_and_told_on_the_front_page() -> None:
    audit = over_time(months(0.35))
    (drift,) = audit.extras[0].tables["drifts"]
    assert drift.headline.args["period"] == drift.changed_from
    english, german = (answer(audit, page_wording(code)).sentences[0] for code in ("en", "de"))
    assert english in render(audit)
    period = page_wording().period(drift.changed_from)
    assert english.startswith(f"Since {period} screen selects F ")
    assert german.startswith(f"Seit {page_wording('de').period(drift.changed_from)} wählt screen F um ")
    calm = answer(over_time(months(0.0)))
    told = next(row.lines for row in calm.rows if row.question == "Since when?")
    assert told == ("No gap is shown to have changed over time.",)


def test_months_come_by_the_calendar_and_names_without_an_order_are_told() -> None:
    assert in_time(["Apr", "Dec", "Feb", "Jan"]) == ("Jan", "Feb", "Apr", "Dec")
    assert in_time(["Friday", "Monday", "Sunday"]) == ("Monday", "Friday", "Sunday")
    assert in_time(["2026-01", "2026-02"]) == ("2026-01", "2026-02")
    assert in_time(["Mai", "März"]) == ("März", "Mai")
    data = months(rows=400)
    assert over_time(data).extras[0].notes == ()
    data["month"] = ["spring" if month < "2026-05" else "autumn" for month in data["month"]]
    (note,) = over_time(data).extras[0].notes
    assert "alphabetical order, from autumn to spring" in note.text


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


def test_what_could_have_been_shown_is_told_where_no_drift_is() -> None:
    """Absence is never a fact: a larger lasting change would have been shown, and more people show a smaller one."""
    (few,), (many,) = (over_time(months(rows=rows)).extras[0].tables["drifts"] for rows in (2000, 8000))
    assert few.least == pytest.approx(2 * many.least, rel=0.2)
    assert over_time(months(1.3 * many.least, rows=8000)).extras[0].tables["drifts"][0].drifted
    assert (few.headline.id, few.headline.args["least"]) == ("after.no_drift_shown", few.least)
    (note,) = over_time(months(rows=2000)).sections()["over_time"].notes
    assert note.id == "after.not_drifted"


def test_the_section_over_time_speaks_german() -> None:
    german = page_wording("de")
    data = {**months(0.35), "month": [None if month == "2026-08" else month for month in months(0.35)["month"]]}
    for audit, words in (
        (over_time(data), "von da an bis 2026-07; er hat sich"),
        (over_time(months(0.0)), "Nach month ließ sich keine Veränderung des Abstands zeigen."),
    ):
        section = audit.sections()["over_time"]
        told = [german.message(note) for note in section.notes]
        assert words in told[0]
        assert all(map(german.translates, section.notes))
        assert [page_wording().message(note) for note in section.notes] == [note.text for note in section.notes]
        spoken = replace(audit, run={**audit.run, "language": "de"})
        assert f'<p class="note" lang="de">{told[0]}</p>' in render(spoken)
        question = "Hat sich ein Abstand nach month über den Zufall hinaus verändert?"
        assert german.section(section)["question"] == question


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
    group = next(row.group for row in audit.extras[0].tables["periods"] if row.reference is not None)
    assert figure.charts[0].title == f"m12: selection rate, {group} (n = {int((sex == group).sum()):,})"
    assert figure.caption.count("selection rate") == 1
    assert str(figure.shows) == "1 of 13 gaps by sex changed beyond chance."
    assert figure.sizes == {"F": int((sex == "F").sum()), "M": int((sex == "M").sum())}


def test_more_groups_than_can_be_told_apart_have_a_panel_each_on_one_axis() -> None:
    rng = np.random.default_rng(5)
    month, race = rng.integers(1, 7, 6000), rng.choice(list("ABCDEFG"), 6000)
    hired = rng.integers(0, 2, 6000) * ~((race == "D") & (month > 3))
    table = eh.Table({"month": month, "race": race, "hired": hired}, groups="race", predictions="hired")
    audit = eh.audit(table, parity={"metrics": "selection_rate"}, report={"period": "month"})
    figure = audit.sections()["over_time"].parts[0]
    assert isinstance(figure, Figure)
    assert len(figure.charts) == 4, "the one that changed, and the largest of the others"
    sizes = Counter(race.tolist())
    reference = next(row.reference for row in audit.extras[0].tables["periods"] if row.reference is not None)
    others = sorted((group for group in sizes if group not in ("D", reference)), key=lambda group: -sizes[group])
    assert [chart.series for chart in figure.charts] == [("D",), *((group,) for group in others[:3])]
    assert f"each group minus {reference} (n = {sizes[reference]:,})" in figure.caption
    assert figure.charts[0].title == f"hired: selection rate, D (n = {int((race == 'D').sum()):,})"
    assert {chart.domain for chart in figure.charts} == {figure.charts[0].domain}
    assert all(len(chart.series) == 1 for chart in figure.charts)
    four = eh.Table(
        {"month": month, "race": np.where(race > "E", "E", race), "hired": hired}, groups="race", predictions="hired"
    )
    together = eh.audit(four, parity={"metrics": "selection_rate"}, report={"period": "month"}).sections()["over_time"]
    assert [len(chart.series) for chart in together.parts[0].charts] == [4]  # type: ignore[union-attr]


def test_a_change_is_drawn_with_the_mean_gaps_before_and_since() -> None:
    audit = over_time(months(0.35))
    (drift,) = audit.extras[0].tables["drifts"]
    figure = audit.sections()["over_time"].parts[0]
    assert isinstance(figure, Figure)
    (panel,) = figure.charts
    change = list(panel.names).index(drift.changed_from)
    (group, first, end, before), (_, start, _, since) = panel.means
    assert (group, before, since) == (drift.group, pytest.approx(100 * drift.before), pytest.approx(100 * drift.since))
    assert first < 0 < end < panel.upright < start < change
    drawn = panel.drawn(600, 0, legend=False)[2]
    assert drawn.count('fill="currentColor" font-weight="600">mean ') == 2
    calm = over_time(months(0.0)).sections()["over_time"].parts[0]
    assert isinstance(calm, Figure)
    assert calm.charts[0].means == ()


def test_no_change_begins_after_it_was_first_shown() -> None:
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        month, sex = rng.integers(1, 13, 3_000), rng.choice(["F", "M"], 3_000)
        rate = np.where((sex == "F") & (month > 8), 0.25, 0.5)
        counts = [np.bincount(month[sex == side], minlength=13)[1:] for side in ("F", "M")]
        hits = [np.bincount(month[(sex == side) & (rng.random(3_000) < rate)], minlength=13)[1:] for side in ("F", "M")]
        changes = gap_drift(hits[0], counts[0], hits[1], counts[1], 0.05)
        if (changes.nearest > 0).any():
            found += 1
            clearest = _clearest_period(changes)
            assert changes.start[clearest] <= changes.look[changes.nearest > 0].min()
            assert changes.nearest[clearest] > 0
    assert found > 40
