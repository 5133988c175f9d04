"""Robustness of the effort audit: the whole grid by an independent loop, laws of the ranking, and bad choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import theilslopes

import evenhand as eh
from evenhand.audits.effort import EffortResult, EffortSpec, effort
from evenhand.audits.effort.charts import curves_of
from evenhand.audits.effort.choices import Choices, as_choices
from evenhand.audits.effort.gather import gather
from evenhand.audits.effort.robustness import (
    SpecificationCurve,
    explore,
    fairest_records,
    flip_records,
    recorded_curves,
    specification_records,
)
from evenhand.audits.effort.specification_chart import MOST_DRAWN, drawn_specifications
from evenhand.charts import to_svg
from evenhand.core.display import DisplayTable, Figure
from evenhand.core.findings import Finding
from evenhand.core.progress import listening
from evenhand.errors import ConfigError, DataError
from evenhand.stats.pairs import fairness_by_weight, individual_fairness

YEARS = [f"income_{year}" for year in range(2019, 2023)]
RATES = {"White": 13, "Asian": 14, "Pacific Islander": 25, "American Indian": 36, "Black": 39, "Hispanic": 33}
OPTIONS: dict[str, Any] = {
    "trajectory": YEARS,
    "inertia": RATES,
    "unit": 10_000,
    "scale": 200_000,
    "weights": (0.6, 0.5),
    "min_count": 4,
}
FEW = Choices(measures=["acceleration"], weights=[0.0, 0.5, 1.0], scales=[1.0], widths=[0.1, 0.2], min_counts=[30])


def make_data(n: int = 60, seed: int = 3) -> pd.DataFrame:
    frame: pd.DataFrame = eh.datasets.make_households(n, seed=seed, backend="pandas")
    return frame.assign(w=np.random.default_rng(0).gamma(2.0, 1.0, n), m=np.linspace(0.2, 1.0, n))


def make_table(data: Any, models: dict[str, str] | None = None, **roles: Any) -> eh.Table:
    columns = models or {"xgboost": "risk_xgboost", "logistic": "risk_logistic"}
    return eh.Table(data, groups=["race", "sex"], predictions=columns, **roles)


class Robustness:
    """The curves of an analysis, and their records."""

    def __init__(self, curves: tuple[SpecificationCurve, ...], steps: Any = YEARS) -> None:
        self.curves = curves
        self.specifications = tuple(r for curve in curves for r in specification_records(curve, steps))
        self.fairest = tuple(r for curve in curves for r in fairest_records(curve))
        self.flips = tuple(r for curve in curves for r in flip_records(curve))


def run(table: eh.Table, choices: Choices, **changes: Any) -> Robustness:
    spec = EffortSpec(**{**OPTIONS, **changes})
    return Robustness(explore(table, gather(table, spec), spec, choices))


def audited(table: eh.Table, choices: Choices, **changes: Any) -> EffortResult:
    return effort(table, **{**OPTIONS, "robustness": choices, **changes})


def told(result: EffortResult) -> list[Finding]:
    """Return the findings on other choices."""
    return [f for f in result.findings if f.metric in ("fairest_share", "specification_range")]


def shown(result: EffortResult) -> list[Figure | DisplayTable]:
    """Return the parts of the report on other choices: the figure, then tables."""
    parts = list(result.section().parts)
    titles = [part.title if isinstance(part, Figure) else part.caption for part in parts]
    return parts[titles.index("Under other choices") :]


# The measures in the words of their definitions.


def mean_acceleration(x: Any) -> float:
    velocity = np.diff(np.cumsum(x))
    return float(np.mean(np.diff(velocity)))


BY_DEFINITION: dict[str, Callable[[Any], float]] = {
    "acceleration": mean_acceleration,
    "slope": lambda x: float(np.polyfit(np.arange(len(x)), x, 1)[0]),
    "theil_sen": lambda x: float(theilslopes(x)[0]),
    "last_minus_first": lambda x: float((x[-1] - x[0]) / (len(x) - 1)),
}


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def fairness_by_hand(m: Any, e: Any, s: Any, w: float, v: Any) -> float:
    i, j = np.triu_indices(len(m), 1)
    d = np.sqrt(w * (e[i] - e[j]) ** 2 + (1 - w) * (s[i] - s[j]) ** 2)
    return float(np.average(1 - np.maximum(0.0, np.abs(m[i] - m[j]) - d), weights=v[i] * v[j]))


def spread_by_hand(m: Any, v: Any) -> float:
    i, j = np.triu_indices(len(m), 1)
    return float(np.average(np.abs(m[i] - m[j]), weights=v[i] * v[j]))


def parities_by_hand(effort: Any, score: Any, group: Any, v: Any, width: float, least: int) -> list[float | None]:
    """Return the parity of every occupied bin; None where there is none."""
    parities: list[float | None] = []
    bins = np.floor(np.round(effort / width, 9))
    for number in np.unique(bins):
        members = [(bins == number) & (group == name) for name in np.unique(group)]
        means = [(score[m] * v[m]).sum() / v[m].sum() for m in members if m.sum() >= least]
        parities.append(min(means) / max(means) if len(means) >= 2 and max(means) > 0 else None)
    return parities


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_every_specification_equals_an_independent_loop(weighted: bool) -> None:
    data = make_data()
    data["v"] = data.w if weighted else 1.0
    choices = Choices(weights=[0, 0.25, 1], units=[1, 3], widths=[0.1, 0.3], min_counts=[4, 8], inertia={"m": "m"})
    table = make_table(data, weight="w" if weighted else None)
    spec = EffortSpec(**OPTIONS)
    found = Robustness(explore(table, _with_column(table, spec, "m"), spec, choices))
    values = iter(found.specifications)
    given, efforts = data.race.map(RATES) / max(RATES.values()), {}
    for (first, last), measure, unit in product(((0, 3), (0, 2), (1, 3)), BY_DEFINITION, (10_000, 30_000)):
        x = data[YEARS[first : last + 1]].to_numpy(float)
        change = sigmoid(np.array([BY_DEFINITION[measure](row / unit) for row in x]))
        for name, m in (("given", given), ("m", data.m)):
            efforts[YEARS[first], YEARS[last], measure, name, unit] = m.to_numpy() * change
    models = ("xgboost", "logistic")
    spreads = {model: spread_by_hand(data[f"risk_{model}"].to_numpy(), data.v.to_numpy()) for model in models}
    for key, w, scale, model in product(_in_order(efforts), (0, 0.25, 0.5, 0.6, 1), (1e5, 2e5, 4e5), models):
        record = next(values)
        assert (record.metric, record.weight, record.scale, record.model) == ("eaif", w, scale, model)
        assert (record.window_first, record.window_last, record.measure, record.inertia, record.unit) == key
        total = data[YEARS[YEARS.index(key[0]) : YEARS.index(key[1]) + 1]].sum(axis=1).to_numpy()
        score = data[f"risk_{model}"].to_numpy() * min(spreads.values()) / spreads[model]
        expected = fairness_by_hand(score, efforts[key], 2 * sigmoid(total / scale) - 1, w, data.v.to_numpy())
        assert record.value == pytest.approx(expected, abs=1e-12)
        assert (record.error, record.width, record.min_count, record.bins) == (0.0, None, None, None)
    for grouping, key, width, least, model in product(("race", "sex"), _in_order(efforts), (0.1, 0.3), (4, 8), models):
        record = next(values)
        assert (record.grouping, record.width, record.min_count, record.model) == (grouping, width, least, model)
        score, group, v = (data[name].to_numpy() for name in (f"risk_{model}", grouping, "v"))
        bins = parities_by_hand(efforts[key], score, group, v, width, least)
        known = [value for value in bins if value is not None]
        assert (record.bins, record.bins_left_out) == (len(known), len(bins) - len(known))
        assert record.value == (pytest.approx(min(known), abs=1e-12) if known else None)
        assert (record.weight, record.scale) == (None, None)
    assert next(values, None) is None


def _in_order(efforts: dict[tuple[Any, ...], Any]) -> list[tuple[Any, ...]]:
    """Return windows, measures, inertias and units in the order of the records: units vary fastest."""
    windows = list(dict.fromkeys(key[:2] for key in efforts))
    measures = list(BY_DEFINITION)
    return sorted(efforts, key=lambda key: (windows.index(key[:2]), measures.index(key[2]), key[3], key[4]))


def _with_column(table: eh.Table, spec: EffortSpec, column: str) -> Any:
    """Return the people with one more column among their numbers, in the same order."""
    people = gather(table, spec)
    key = [people.rows.numbers[name] for name in YEARS]
    wider = table.person_rows([*YEARS, column])
    order, other = np.lexsort(key), np.lexsort([wider.numbers[name] for name in YEARS])
    values = np.empty(len(order))
    values[order] = wider.numbers[column][other]
    return replace(people, rows=replace(people.rows, numbers={**people.rows.numbers, column: values}))


def test_ranking_and_flips_equal_a_loop_over_the_records() -> None:
    found = run(make_table(make_data(200)), Choices(scales=[0.5, 1], weights=[0, 0.5, 1]))
    choice_of = {"window": ("window_first", "window_last")}
    for metric, grouping in {(r.metric, r.grouping) for r in found.specifications}:
        records = [r for r in found.specifications if (r.metric, r.grouping) == (metric, grouping)]
        names = [n for c in found.curves[0].choices + found.curves[1].choices for n in choice_of.get(c.name, (c.name,))]
        keys = list(dict.fromkeys(names))
        values: dict[tuple[Any, ...], dict[str, float]] = {}
        for r in records:
            values.setdefault(tuple(getattr(r, key) for key in keys), {})[r.model] = r.value or np.nan
        best = {k: max(v, key=lambda m: v[m]) for k, v in values.items() if not np.isnan(list(v.values())).any()}
        for fairest in (r for r in found.fairest if (r.metric, r.grouping) == (metric, grouping)):
            assert fairest.ranked == len(best)
            assert fairest.wins == sum(model == fairest.model for model in best.values())
            assert fairest.specifications == len(values)
            own = [r for r in records if r.own and r.model == fairest.model]
            assert [fairest.own_value] == [r.value for r in own]
        for flip in (r for r in found.flips if (r.metric, r.grouping) == (metric, grouping)):
            varied = [keys.index(name) for name in choice_of.get(flip.choice, (flip.choice,))]
            pairs = [
                (a, b)
                for a, b in combinations(best, 2)
                if all((x == y) or at in varied for at, (x, y) in enumerate(zip(a, b, strict=True)))
            ]
            assert flip.comparisons == len(pairs)
            assert flip.changed == sum(best[a] != best[b] for a, b in pairs)
    assert any(r.changed for r in found.flips)


def test_the_own_specification_has_the_numbers_of_the_audit() -> None:
    table = make_table(make_data(300))
    audit = effort(table, **OPTIONS)
    found = run(table, FEW)
    own = [r for r in found.specifications if r.own]
    assert len(own) == 2 * 3
    for record in own:
        if record.metric == "eaif":
            assert record.weight == 0.6
            same = audit.get("values", metric="eaif", model=record.model, weight=0.6)
            assert record.value == same.at_least_spread
        else:
            bins = audit.rows("gaps", metric="eagf", model=record.model, grouping=record.grouping)
            values = [r.value for r in bins if r.bin_low is not None and r.value is not None]
            assert record.value == pytest.approx(min(values), abs=1e-14)
            assert record.bins == len(values)
    second = [r for r in found.specifications if r.metric == "eaif" and r.weight == 0.5 and r.inertia == "given"]
    whole = [r for r in second if (r.window_first, r.window_last) == (YEARS[0], YEARS[-1])]
    expected = {r.model: r.at_least_spread for r in audit.rows("values", metric="eaif", weight=0.5)}
    assert {r.model: r.value for r in whole} == expected


def test_row_order_changes_nothing() -> None:
    data = make_data(150)
    found, other = (run(make_table(rows), Choices()) for rows in (data, data.sample(frac=1, random_state=1)))
    assert found.specifications == other.specifications
    assert (found.fairest, found.flips) == (other.fairest, other.flips)


def test_relabelled_models_keep_their_numbers() -> None:
    table = make_table(make_data(150))
    renamed = make_table(make_data(150), {"b": "risk_logistic", "a": "risk_xgboost"})
    names = {"xgboost": "a", "logistic": "b"}
    found, other = run(table, FEW), run(renamed, FEW)
    # Sums are added in another order, so that values agree to rounding; who is the fairest agrees entirely.
    values = {replace(r, value=None, model=names[r.model]): r.value for r in found.specifications}
    assert values == pytest.approx({replace(r, value=None): r.value for r in other.specifications}, abs=1e-13)
    wins = {(r.metric, r.grouping, names[r.model]): (r.wins, r.own_fairest) for r in found.fairest}
    assert wins == {(r.metric, r.grouping, r.model): (r.wins, r.own_fairest) for r in other.fairest}
    assert found.flips == other.flips


@pytest.mark.slow
def test_shares_sum_to_one_and_tied_models_split_evenly() -> None:
    models = {"a": "risk_xgboost", "b": "risk_xgboost", "c": "risk_logistic"}
    found = run(make_table(make_data(200), models), Choices())
    for metric, grouping in {(r.metric, r.grouping) for r in found.fairest}:
        a, b, c = (r for r in found.fairest if (r.metric, r.grouping) == (metric, grouping))
        assert sum(r.share or 0 for r in (a, b, c)) == pytest.approx(1)
        assert a.wins == b.wins
        assert (a.tied, c.tied) == (b.tied, 0)
        assert a.wins == (a.tied or 0) / 2
    both: dict[tuple[Any, ...], set[str]] = {}
    for r in found.specifications:
        if r.metric == "eaif" and r.fairest:
            key = (r.window_first, r.window_last, r.measure, r.scale, r.inertia, r.weight, r.unit)
            both.setdefault(key, set()).add(r.model)
    assert set(map(frozenset, both.values())) <= {frozenset("ab"), frozenset("c")}
    findings = told(audited(make_table(make_data(200), models), Choices()))
    assert any("counted in parts where models are tied" in str(f.detail) for f in findings)


def test_two_equal_models_are_tied_everywhere() -> None:
    found = run(make_table(make_data(100), {"a": "risk_xgboost", "b": "risk_xgboost"}), FEW)
    eaif = [r for r in found.fairest if r.metric == "eaif"]
    assert [(r.share, r.tied, r.own_fairest) for r in eaif] == [(0.5, r.specifications, True) for r in eaif]
    assert all(r.changed == 0 for r in found.flips)
    finding = told(audited(make_table(make_data(100), {"a": "risk_xgboost", "b": "risk_xgboost"}), FEW))[0]
    assert finding.headline.text.startswith(
        "a and b are the fairest to individuals at equal spread of scores in 50.0% of"
    )
    assert finding.headline.text.endswith(" each.")
    assert "No choice alone changes it." in str(finding.detail)


def test_one_model_has_a_range_but_no_ranking() -> None:
    found = run(make_table(make_data(100), {"only": "risk_xgboost"}), FEW)
    assert {r.fairest for r in found.specifications} == {None}
    assert {(r.share, r.wins, r.own_fairest, r.status.text) for r in found.fairest} == {
        (None, None, None, "one model: no ranking")
    }
    record = found.fairest[0]
    values = [r.value or 0 for r in found.specifications if r.metric == "eaif"]
    assert (record.low, record.high) == (min(values), max(values))
    assert {(r.comparisons, r.share) for r in found.flips} == {(0, None)}
    result = audited(make_table(make_data(100), {"only": "risk_xgboost"}), FEW)
    finding = told(result)[0]
    assert finding.headline.text.startswith("only: individual fairness runs from 0.")
    assert finding.value == record.own_value
    parts = shown(result)
    assert [part.caption for part in parts if isinstance(part, DisplayTable)] == [
        "The range of values over all specifications",
        "The choices that were declared",
    ]
    assert to_svg(parts[0].charts[0], "t", "d", name="x") if isinstance(parts[0], Figure) else False


def test_undefined_parities_are_carried_with_a_reason_and_counted() -> None:
    choices = FEW.model_copy(update={"min_counts": (59,)})
    found = run(make_table(make_data(60)), choices)
    lost = [r for r in found.specifications if r.metric == "eagf" and r.min_count == 59]
    assert {(r.value, r.error, r.fairest, r.bins) for r in lost} == {(None, None, None, 0)}
    assert {r.status.text for r in lost} == {
        "undefined: no effort bin has two groups of at least 59 people and a mean score above 0"
    }
    for record in (r for r in found.fairest if r.metric == "eagf"):
        known = [
            r for r in found.specifications if (r.grouping, r.model) == (record.grouping, record.model) and r.value
        ]
        assert record.undefined == record.specifications - len(known) >= record.specifications // 2
        assert record.ranked == len(known)
    details = [f.detail for f in told(audited(make_table(make_data(60)), choices)) if f.grouping is not None]
    assert len(details) == 2
    assert all(" more cannot be ranked" in str(detail) for detail in details)
    flips = {r.choice: r for r in found.flips if r.grouping == "sex"}
    assert flips["min_count"].status.text == "undefined: no specification can be ranked"


def test_nothing_can_be_ranked_and_it_is_still_told() -> None:
    result = audited(make_table(make_data(60)), FEW, min_count=59)
    finding = next(f for f in told(result) if f.grouping == "race")
    assert finding.headline.text.startswith(
        "Which model is the fairest by race among people of similar effort cannot be"
    )
    assert finding.value is None
    assert str(finding.reason) == "No specification can be ranked."
    figure = shown(result)[0]
    assert isinstance(figure, Figure)
    for number, chart in enumerate(figure.charts):
        assert to_svg(chart, "t", "d", name=f"x{number}").startswith("<svg")


def test_scores_of_zero_have_no_parity() -> None:
    data = make_data(60).assign(zero=0.0)
    found = run(make_table(data, {"zero": "zero", "xgboost": "risk_xgboost"}), FEW)
    zero = [r for r in found.specifications if r.model == "zero" and r.metric == "eagf"]
    assert {(r.value, r.bins) for r in zero} == {(None, 0)}
    other = [r for r in found.specifications if r.model == "xgboost" and r.metric == "eagf" and r.value]
    assert {r.fairest for r in other} == {None}  # a ranking of those that are left would mislead


def test_time_stamps_are_those_of_the_window() -> None:
    data = make_data(80)
    stamps = (2019.0, 2020.0, 2022.0, 2025.0)
    found = run(make_table(data), FEW, times=stamps)
    part = effort(make_table(data), **{**OPTIONS, "trajectory": YEARS[1:], "times": stamps[1:]})
    for record in part.rows("values", metric="eaif"):
        same = next(
            r
            for r in found.specifications
            if (r.window_first, r.model, r.weight, r.inertia) == (YEARS[1], record.model, record.weight, "given")
        )
        assert same.value == record.at_least_spread


@pytest.mark.parametrize("kind", ["continuous", "atoms", "weighted"])
def test_the_grid_is_right_to_its_stated_error(kind: str) -> None:
    rng = np.random.default_rng(5)
    n, weights = 3_000, [0.0, 0.3, 0.5, 1.0]
    effort_values, aggregate, score = rng.beta(2, 3, n), np.tanh(rng.gamma(2, 0.4, n)), rng.random(n)
    survey = rng.gamma(2.0, 1.0, n) if kind == "weighted" else None
    if kind == "atoms":
        effort_values, aggregate = rng.integers(0, 9, n) / 8.3, rng.choice([0, 0.1, 0.13, 0.3, 0.5, 0.77, 0.8, 1.0], n)
    near, error = fairness_by_weight(score, effort_values, aggregate, weights, survey, exact_rows=100)
    exact = [individual_fairness(score, effort_values, aggregate, w, survey_weight=survey).value for w in weights]
    assert np.all(error > 0)
    assert np.all(np.abs(near - exact) < error)
    assert np.all(error < 1e-4)


@pytest.mark.slow
def test_models_within_the_error_of_the_grid_are_tied() -> None:
    data = make_data(400)
    data["twin"] = np.clip(data.risk_xgboost + 1e-9, 0, 1)
    table = make_table(data, {"a": "risk_xgboost", "b": "twin"})
    spec = EffortSpec(**OPTIONS)
    found = Robustness(explore(table, gather(table, spec), spec, FEW, exact_rows=50))
    eaif = [r for r in found.specifications if r.metric == "eaif"]
    assert {r.fairest for r in eaif} == {True}
    assert all((r.error or 0) > 0 for r in eaif)
    result = replace(audited(table, FEW), specifications=found.specifications)
    assert any("closer than that count as tied" in method.text for method in result.section().methods)


def test_few_different_people_are_compared_exactly_however_many_there_are() -> None:
    rng = np.random.default_rng(0)
    score, effort_values, aggregate = (np.repeat(rng.random(40), 50) for _ in range(3))
    values, error = fairness_by_weight(score, effort_values, aggregate, [0.5], exact_rows=40)
    assert error[0] == 0
    assert values[0] == individual_fairness(score, effort_values, aggregate, 0.5).value
    assert fairness_by_weight(score, effort_values, aggregate, [0.5], exact_rows=39)[1][0] > 0


def test_other_inertias_by_rates_published_table_and_column() -> None:
    data = make_data(120)
    data = data[data.race != "Hispanic"]
    choices = FEW.model_copy(update={"inertia": {"paper": "nces-2012", "mine": {**RATES, "White": 20}}})
    found = run(make_table(data), choices)
    assert found.curves[0].choices[2].options == ("given", "paper", "mine")
    for name, inertia in (("paper", "nces-2012"), ("mine", {**RATES, "White": 20})):
        audit = effort(make_table(data), **{**OPTIONS, "inertia": inertia})
        same = {
            r.model: r.value
            for r in found.specifications
            if (r.metric, r.inertia, r.weight) == ("eaif", name, 0.5)
            and r.window_first == YEARS[0]
            and r.window_last == YEARS[-1]
        }
        assert same == {r.model: r.at_least_spread for r in audit.rows("values", metric="eaif", weight=0.5)}


def test_an_inertia_that_lacks_people_is_refused() -> None:
    with pytest.raises(DataError, match=r"inertia 'paper' of `robustness`: `inertia` has no rate for 'Hispanic'"):
        run(make_table(make_data(120)), Choices(inertia={"paper": "nces-2012"}))
    data = make_data(60)
    table = make_table(data)
    spec = EffortSpec(**OPTIONS)
    people = _with_column(table, spec, "m")
    people.rows.numbers["m"][:2] = np.nan, -1.0
    with pytest.raises(DataError, match=r"inertia 'mine' of `robustness` is missing, .* for 2 people"):
        explore(table, people, spec, Choices(inertia={"mine": "m"}))


def test_the_default_grid_follows_the_audit() -> None:
    spec = EffortSpec(**OPTIONS)
    grid = Choices().grid(spec, YEARS)
    assert grid.window.options == ((0, 3), (0, 2), (1, 3))
    assert grid.measure.options == ("acceleration", "slope", "theil_sen", "last_minus_first")
    assert grid.inertia.options == ("given", "none")
    assert grid.weight.options == (0, 0.25, 0.5, 0.6, 0.75, 1)
    assert grid.scale.options == (100_000, 200_000, 400_000)
    assert (grid.unit.options, grid.width.options, grid.min_count.options) == ((10_000,), (0.05, 0.1, 0.2), (4, 30))
    own = [choice.options[choice.chosen] for choice in (*grid.individual, *grid.group[-2:])]
    assert own == [(0, 3), "acceleration", "given", 10_000, 0.6, 200_000, "euclidean", 0.1, 4]
    assert Choices().grid(EffortSpec(trajectory=YEARS), YEARS).inertia.options == ("none",)


def test_the_audits_own_option_is_always_among_them() -> None:
    spec = EffortSpec(**{**OPTIONS, "measure": "slope", "width": 0.07})
    choices = Choices(windows=[YEARS[:3]], measures=["theil_sen"], weights=[0.1], scales=[3], units=[2], widths=[0.5])
    grid = choices.grid(spec, YEARS)
    assert grid.window.options == ((0, 3), (0, 2))
    assert grid.measure.options == ("slope", "theil_sen")
    assert grid.weight.options == (0.1, 0.5, 0.6)
    assert (grid.scale.options, grid.unit.options) == ((200_000, 600_000), (10_000, 20_000))
    assert (grid.width.options, grid.width.chosen) == ((0.07, 0.5), 0)


@pytest.mark.parametrize(("steps", "windows"), [(3, 1), (4, 3), (5, 6), (6, 10), (7, 9), (20, 9)])
def test_windows_of_long_trajectories_are_cut_at_either_end(steps: int, windows: int) -> None:
    names = [f"x{step}" for step in range(steps)]
    options = Choices().grid(EffortSpec(trajectory=names), names).window.options
    assert len(options) == len(set(options)) == windows
    assert options[0] == (0, steps - 1)
    assert all(last - first >= 2 for first, last in options)
    if windows == 9:
        assert set(options[1:]) == {(0, steps - 1 - k) for k in range(1, 5)} | {(k, steps - 1) for k in range(1, 5)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"windows": [["income_2019", "icnome_2021"]]}, r"'icnome_2021', which is no time step; did you mean"),
        ({"windows": [["income_2019", "income_2020"]]}, "at least 3 time steps, earliest first; .* has 2"),
        ({"windows": [["income_2021", "income_2019"]]}, "at least 3 time steps, earliest first; .* has 0"),
        ({"windows": [["income_2019"]]}, r"`windows` in \[effort.robustness\]: each must name a first and a last"),
        ({"windows": [["income_2019", "income_2021", "income_2022"]]}, "must be consecutive time steps"),
        ({"weights": [0.5, 1.5]}, r"`weights` in \[effort.robustness\]: each must be between 0 and 1; got 1.5"),
        ({"weights": [-0.1]}, "between 0 and 1; got -0.1"),
        ({"weights": [float("nan")]}, "between 0 and 1; got nan"),
        ({"scales": [0]}, "each must be above 0; got 0"),
        ({"units": [float("inf")]}, "each must be above 0; got inf"),
        ({"widths": [1.5]}, "above 0 and at most 1; got 1.5"),
        ({"min_counts": [0]}, "at least 1; got 0"),
        ({"measures": ["speed"]}, "'acceleration', 'slope'"),
        ({"inertia": {"given": "none"}}, "kept for the audit's own inertia"),
        ({"inertia": {"none": "nces-2012"}}, "kept for no inertia"),
        ({"inertia": {"mine": {}}}, "'mine' has no rates"),
        ({"weigths": [0.5]}, "did you mean 'weights'"),
        ({"weights": [k / 1000 for k in range(1000)]}, "at most 20,000 are tried: leave out some options"),
    ],
)
def test_wrong_choices_are_told(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Choices.parse(change, "[effort.robustness]").grid(EffortSpec(**OPTIONS), YEARS)


def test_a_switch_or_a_table() -> None:
    assert as_choices(True) == Choices()
    assert as_choices(False) is None
    assert as_choices({"weights": [1]}) == {"weights": [1]}
    assert Choices(inertia={"x": "poverty", "y": "nces-2012", "z": "none", "r": {"a": 1.0}}).columns == ("poverty",)


def test_the_chart_draws_few_specifications_evenly_and_the_own_one() -> None:
    found = run(make_table(make_data(100)), Choices())
    curve = found.curves[0]
    assert curve.size > MOST_DRAWN
    drawn = drawn_specifications(curve)
    assert len(drawn) == len(set(drawn.tolist())) == MOST_DRAWN
    own = np.ravel_multi_index(curve.chosen, curve.value.shape[:-1])
    assert own in drawn
    winner = int(curve.wins.reshape(-1, 2).sum(axis=0).argmax())
    values = curve.value.reshape(-1, 2)[drawn, winner]
    assert np.all(np.diff(values) >= 0)
    assert (values[0], values[-1]) == (curve.value[..., winner].min(), curve.value[..., winner].max())


@pytest.mark.slow
def test_the_parts_of_a_report() -> None:
    result = audited(make_table(make_data(100)), Choices())
    parts = shown(result)
    figure = parts[0]
    assert isinstance(figure, Figure)
    assert [chart.title for chart in figure.charts] == [
        "Individual fairness",
        "Lowest parity by effort: race",
        "Lowest parity by effort: sex",
    ]
    assert f"{MOST_DRAWN} are drawn" in figure.caption
    svg = to_svg(figure.charts[0], figure.title, figure.description, name="curve")
    assert float(svg.split('width="')[1].split('"')[0]) <= 390
    assert len(svg) < 120_000
    for option in ("2020 to 2022", "Theil-Sen slope", "400,000", "Fairest"):
        assert option in svg
    assert [part.caption for part in parts[1:] if isinstance(part, DisplayTable)] == [
        "How often each model is the fairest",
        "Which choice changes the fairest model",
        "The choices that were declared",
    ]
    for table in parts[1:]:
        assert isinstance(table, DisplayTable)
        assert {len(row) for row in table.rows} == {len(table.columns)} == {len(table.numeric)}
    methods = " ".join(method.text for method in result.section().methods)
    assert "fairwashing" in methods
    assert "All pairs are compared exactly" in methods


def test_findings_say_who_how_often_and_what_changes_it() -> None:
    result = audited(make_table(make_data(200)), Choices())
    for finding, curve in zip(told(result), curves_of(result), strict=True):
        assert (finding.model, finding.n) == (curve.models[int(curve.wins.reshape(-1, 2).sum(axis=0).argmax())], 200)
        lead = result.get("fairest", metric=curve.metric, grouping=curve.grouping, model=finding.model)
        assert finding.headline.text.startswith(f"{lead.model} is the fairest ")
        assert finding.value == lead.share
        if lead.share != 1:
            assert f"{100 * lead.share:.1f}% of {lead.ranked} specifications" in finding.headline.text
            assert f"That is {lead.wins:g} of {lead.ranked}" in str(finding.detail)
            agrees = ", the audit's own among them" if lead.own_fairest else "; in the audit's own specification it is"
            assert agrees in str(finding.detail)
        flips = result.rows("flips", metric=curve.metric, grouping=curve.grouping)
        most = max(flips, key=lambda r: r.share or 0)
        titles = {choice.name: choice.title[1:] for choice in curve.choices}
        expected = titles[most.choice] if most.changed else "No choice alone changes it"
        assert expected in str(finding.detail)
        assert "; n = 200." in str(finding.detail)


def test_curves_are_rebuilt_from_their_records() -> None:
    spec = EffortSpec(**OPTIONS)
    table = make_table(make_data(60))
    curves = explore(table, gather(table, spec), spec, FEW)
    records = [record for curve in curves for record in specification_records(curve, YEARS)]
    for curve, again in zip(curves, recorded_curves(records, FEW.grid(spec, YEARS)), strict=True):
        assert (curve.metric, curve.grouping, curve.models) == (again.metric, again.grouping, again.models)
        for name in ("value", "error", "fairest", "ranked", "wins"):
            np.testing.assert_array_equal(getattr(curve, name), getattr(again, name), err_msg=name)


def test_progress_is_told() -> None:
    heard: list[str] = []
    with listening(heard.append):
        run(make_table(make_data(60)), FEW)
    told = [text for text in heard if text.startswith("Trying other choices")]
    assert told[:2] == [f"Trying other choices: {done} of 24 specifications" for done in (0, 8)]
    assert len(told) == 3


def test_the_weights_at_either_end_are_computed_for_all_that_cannot_matter() -> None:
    found = run(make_table(make_data(60)), Choices(units=[1, 2]))
    eaif = [r for r in found.specifications if r.metric == "eaif"]
    for (first, last), model, scale in product(
        {(r.window_first, r.window_last) for r in eaif}, ("xgboost", "logistic"), (100_000, 400_000)
    ):
        part = [r for r in eaif if (r.window_first, r.window_last, r.model, r.scale) == (first, last, model, scale)]
        assert len({r.value for r in part if r.weight == 0}) == 1
        assert len({r.value for r in part if r.weight == 0.5}) > 4
    ends = run(make_table(make_data(60)), Choices(weights=[1]), weights=(0.0,))
    both = {r for r in ends.specifications if r.metric == "eaif"}
    assert {r.weight for r in both} == {0, 1}
    assert {(r.value, r.weight, r.scale) for r in both} == {
        (r.value, r.weight, r.scale) for r in eaif if r.unit == 10_000 and r.weight in (0, 1)
    }
