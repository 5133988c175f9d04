"""A row for each rating, and raters who did not rate everybody: the same numbers from every shape of table."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.errors import ConfigError, DataError
from evenhand.stats.agreement import ac1, fleiss_kappa, icc

COLUMNS: dict[str, Any] = {"item": "case", "rater": "coder", "rating": "score"}
QUICK: dict[str, Any] = {"resamples": 100}


@pytest.fixture(scope="module")
def wide() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(60, 1)) + [-0.5, 0.0, 0.2, 0.6] + 0.7 * rng.normal(size=(60, 4))
    missed = (rng.random(scores.shape) < 0.3) & (rng.random(scores.shape).argsort(axis=1) >= 2)
    frame = pd.DataFrame(np.where(missed, np.nan, scores.round(2)), columns=list("abcd"))
    return frame.assign(case=[f"case {n:02}" for n in range(60)], sex=["F", "M"] * 30)


@pytest.fixture(scope="module")
def long(wide: pd.DataFrame) -> pd.DataFrame:
    melted = wide.melt(["case", "sex"], list("abcd"), "coder", "score").dropna()
    return melted.sample(frac=1, random_state=1).reset_index(drop=True)


def run(data: Any, **settings: Any) -> Any:
    return eh.agreement(eh.Table(data, groups="sex"), **{**COLUMNS, **QUICK, **settings})


@pytest.fixture(scope="module")
def found(long: pd.DataFrame) -> Any:
    return run(long)


ENGINES: dict[str, Any] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "duckdb": lambda frame: duckdb.sql("SELECT * FROM frame"),
}


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "pandas"])
def test_a_row_for_each_rating_gives_the_same_records_on_every_engine(
    long: pd.DataFrame, found: Any, engine: str
) -> None:
    assert run(ENGINES[engine](long)).to_dict() == found.to_dict()


def test_a_row_for_each_rating_is_a_column_for_each_rater(wide: pd.DataFrame, found: Any) -> None:
    ours, theirs = found, run(wide, raters=list("abcd"), missing="keep", item=None, rater=None, rating=None)
    assert ours.values == theirs.values
    assert ours.gaps == theirs.gaps
    assert ours.raters == theirs.raters == tuple("abcd")
    assert [f.headline.text for f in ours.findings] == [f.headline.text for f in theirs.findings]
    value = ours.get("values", metric="icc_a1", grouping=None)
    assert value.value == pytest.approx(float(icc(*wide[list("abcd")].to_numpy().T, form="A,1")))
    assert value.method == "generalised pivot"
    assert value.low < value.value < value.high


def test_scores_with_gaps_have_gaps_between_groups_that_are_tested(found: Any) -> None:
    gap = found.get("gaps", metric="icc_a1", against="reference")
    assert gap.status.id == "core.ok"
    assert gap.p_value is not None


def test_categories_count_the_pairs_there_are(wide: pd.DataFrame, long: pd.DataFrame) -> None:
    graded = long.assign(score=np.where(long.score > 0, "yes", "no"))
    found = run(graded)
    columns = [np.where(wide[name].isna(), np.nan, wide[name] > 0).astype(float) for name in "abcd"]
    for name, kernel in (("fleiss_kappa", fleiss_kappa), ("ac1", ac1)):
        assert found.get("values", metric=name, grouping=None).value == pytest.approx(float(kernel(*columns)))
    assert "agreement.lack_ratings" in {note.id for note in found.notes}
    assert found.section().parts


def test_drop_leaves_only_what_everybody_rated(wide: pd.DataFrame, long: pd.DataFrame) -> None:
    found = run(long, missing="drop")
    complete = wide.dropna()
    assert found.get("values", metric="icc_a1", grouping=None).n == len(complete)
    assert found.left_out[0].n == len(wide) - len(complete)


def test_arrays_may_stand_for_columns(long: pd.DataFrame, found: Any) -> None:
    given = {role: long[column].to_numpy() for role, column in COLUMNS.items()}
    given_so = eh.agreement(eh.Table(long[["sex"]], groups="sex"), **given, **QUICK)
    assert given_so.values == found.values


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"item": None}, "needs `item`, or all of `item`, `rater` and `rating`"),
    ({"item": None, "rater": None, "rating": None}, "needs `raters`, a column for each rater, or all of"),
    ({"raters": ["case", "score"]}, "give `raters`, a column for each, or `item`, `rater` and `rating`"),
    ({"rater": "coda"}, "'coda', which is not in the data"),
    ({"rater": "score"}, "`item, rater, rating` names the column 'score' twice"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG)
def test_columns_that_do_not_go_together(long: pd.DataFrame, settings: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        run(long, **settings)


def test_rows_that_contradict_each_other(long: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="the item 'case 00' has more than one rating by 'a'; keep one"):
        run(pd.concat([long, long[(long.case == "case 00") & (long.coder == "a")]]))
    mixed = long.assign(sex=np.where(long.coder == "a", "F", "M"))
    with pytest.raises(DataError, match="has rows of more than one 'sex'; give all its rows the same"):
        run(mixed)
    with pytest.raises(DataError, match=r"`rater` has 1 value; agreement needs two raters"):
        run(long[long.coder == "a"])
    with pytest.raises(DataError, match=r"`item` is missing in 1 row; fill it"):
        run(long.assign(case=long.case.where(long.index > 0)))


def test_raters_who_share_nobody_have_icc_1_alone() -> None:
    rng = np.random.default_rng(0)
    case = np.repeat(np.arange(12), 2)
    data = {"case": case, "coder": np.arange(24), "score": (rng.normal(size=12)[case] + rng.normal(size=24)).round(3)}
    found = eh.agreement(eh.Table(data), **COLUMNS, **QUICK)
    assert found.get("values", metric="icc_1").status.id == "core.ok"
    assert "share too few people" in found.get("values", metric="icc_a1").status.text


def test_audit_toml_reads_a_row_for_each_rating(long: pd.DataFrame, found: Any, tmp_path: Any) -> None:
    long.to_csv(tmp_path / "ratings.csv", index=False)
    (tmp_path / "audit.toml").write_text(
        '[data]\nsource = "ratings.csv"\ngroups = "sex"\n'
        '[agreement]\nitem = "case"\nrater = "coder"\nrating = "score"\nresamples = 100\n'
    )
    audit = eh.audit(tmp_path / "audit.toml")
    assert audit["agreement"].rows("values") == found.values
    assert "generalised pivot" in audit.save(tmp_path / "out")["report.html"].read_text(encoding="utf-8")
