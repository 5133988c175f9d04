"""Several sources of inertia, and what uncertain rates do to effort and to the intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.effort import EffortResult, EffortSpec, person_scores
from evenhand.audits.effort.gather import gather
from evenhand.errors import ConfigError, DataError

YEARS = ["y1", "y2", "y3"]
POVERTY: dict[str, Any] = {"by": "race", "rates": {"a": 10, "b": 20, "c": 40}}
SEX = {"by": "sex", "rates": {"f": 3, "m": 2}}


def people(n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    columns = dict(zip(YEARS, rng.gamma(3.0, 1.0, (3, n)), strict=True))
    more = {"risk": rng.random(n), "other": rng.random(n), "own": rng.random(n) + 0.5, "own_se": np.full(n, 0.1)}
    race, sex = np.array(["a", "b", "c"])[np.arange(n) % 3], np.array(["f", "m"])[np.arange(n) % 2]
    return pd.DataFrame({"id": [f"p{i:03}" for i in range(n)], "race": race, "sex": sex, **columns, **more})


def table(data: pd.DataFrame) -> eh.Table:
    return eh.Table(data, id="id", groups=["race", "sex"], predictions={"risk": "risk", "other": "other"})


def settings(*sources: dict[str, Any], **more: Any) -> dict[str, Any]:
    named = {f"source {number}": source for number, source in enumerate(sources)}
    return {"trajectory": YEARS, "scale": 10, "inertia": {"sources": named, **more}}


def inertia(*sources: dict[str, Any], **more: Any) -> Any:
    found = gather(table(people()), EffortSpec(**settings(*sources, **more)))
    return dict(zip(found.rows.ids or (), found.inertia, strict=True))


def audit(*sources: dict[str, Any], **more: Any) -> EffortResult:
    return eh.effort(table(people()), width=0.5, **settings(*sources, **more))


def test_sources_are_scaled_and_combined_for_each_person() -> None:
    data = people().set_index("id")
    poverty, sex = data.race.map(POVERTY["rates"]) / 40, data.sex.map(SEX["rates"]) / 3
    expected = {
        "product": poverty * sex * data.own,
        "sum": (poverty + sex + data.own) / 3,
    }
    for combine, truth in expected.items():
        found = inertia(POVERTY, SEX, {"column": "own"}, combine=combine)
        assert found == pytest.approx(truth.to_dict())


def test_a_table_of_combinations_is_a_source_of_several_columns() -> None:
    rates = {f"{race} × {sex}": 1 + i + 3 * j for i, race in enumerate("abc") for j, sex in enumerate("fm")}
    found = inertia({"by": ["race", "sex"], "rates": rates})
    data = people().set_index("id")
    assert found == pytest.approx(
        {name: rates[f"{r} × {s}"] / 6 for name, r, s in zip(data.index, data.race, data.sex, strict=True)}
    )


def test_one_source_without_errors_is_the_same_as_plain_rates() -> None:
    plain = eh.effort(table(people()), trajectory=YEARS, scale=10, width=0.5, inertia=POVERTY["rates"])
    assert audit(POVERTY).values == plain.values
    assert audit(POVERTY).gaps == plain.gaps


def test_uncertain_rates_widen_the_intervals_and_say_by_how_much() -> None:
    errors = {"a": 4, "b": 6, "c": 10}
    sure, unsure = audit(POVERTY), audit({**POVERTY, "errors": errors})
    for metric, name in (("eaif", "values"), ("eaif", "gaps"), ("eagf", "gaps")):
        for one, other in zip(sure.rows(name, metric=metric), unsure.rows(name, metric=metric), strict=True):
            assert one.value == other.value
            if other.rates_share is not None:
                assert 0 <= other.rates_share < 1
    one, other = (result.get("values", metric="eaif", model="risk") for result in (sure, unsure))
    assert other.high - other.low > one.high - one.low
    assert other.rates_share > 0
    assert "comes from the rates of inertia" in str(unsure.findings[0].detail)
    assert "effort.uncertain_rates" in {note.id for note in unsure.notes}
    whole = unsure.get("gaps", metric="eagf", grouping="sex", model="risk", bin_low=None)
    assert whole.rates_share is None


def test_each_persons_effort_has_the_error_of_their_rate() -> None:
    frame = person_scores(table(people()), **settings({"column": "own", "error_column": "own_se"}, imputations=200))
    relative = (frame.effort_stderr / frame.effort) / (0.1 / people().set_index("id").own[frame.id].to_numpy())
    assert relative.mean() == pytest.approx(1.0, abs=0.05)


def test_wrong_sources_say_what_to_do() -> None:
    with pytest.raises(ConfigError, match="either `rates` with `by`, or a `column`"):
        audit({"by": "race"})
    with pytest.raises(ConfigError, match="'d', which has no rate"):
        audit({**POVERTY, "errors": {"d": 1}})
    with pytest.raises(ConfigError, match="`by` of the source 'source 0' is 'rase'"):
        audit({"by": "rase", "rates": {"a": 1}})
    with pytest.raises(DataError, match="no rate for 'c'"):
        audit({"by": "race", "rates": {"a": 1, "b": 2}})
