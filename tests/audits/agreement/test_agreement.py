"""The agreement audit: other libraries and published examples, laws, bad input, and the report."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.audits.agreement import AgreementResult, agreement
from evenhand.audits.agreement.metrics import METRICS, SCALES, metrics_for
from evenhand.charts import to_svg
from evenhand.core.display import DisplayTable, Figure
from evenhand.errors import ConfigError, DataError

JUDGES = {"a": [9, 6, 8, 7, 10, 6], "b": [2, 1, 4, 1, 5, 2], "c": [5, 3, 6, 2, 6, 4], "d": [8, 2, 8, 6, 9, 7]}
QUICK: dict[str, Any] = {"resamples": 200}


def make_ratings(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    first = rng.random(n) < 0.35
    group = np.where(np.arange(n) % 3 == 0, "A", "B")
    wrong = rng.random(n) < np.where(group == "A", 0.3, 0.08)
    score = rng.normal(size=n)
    grade = rng.integers(0, 4, n)
    return pd.DataFrame(
        {
            "x": first.astype(int),
            "y": np.where(wrong, ~first, first).astype(int),
            "z": (rng.random(n) < 0.4).astype(int),
            "group": group,
            "weight": rng.integers(1, 4, n),
            "score_x": score.round(2),
            "score_y": (score + 0.4 * rng.normal(size=n)).round(2),
            "grade_x": np.array(["poor", "fair", "good", "best"])[grade],
            "grade_y": np.array(["poor", "fair", "good", "best"])[np.clip(grade + rng.integers(-1, 2, n), 0, 3)],
        }
    )


@pytest.fixture
def ratings() -> pd.DataFrame:
    return make_ratings()


@pytest.fixture
def table(ratings: pd.DataFrame) -> eh.Table:
    return eh.Table(ratings, groups="group")


# Published examples and other libraries -------------------------------------------------------------------


@pytest.mark.replication
def test_shrout_and_fleiss() -> None:
    found = agreement(eh.Table(JUDGES), raters=list("abcd"), **QUICK)
    expected = {"icc_1": 0.17, "icc_a1": 0.29, "icc_c1": 0.71, "icc_k": 0.44, "icc_ak": 0.62, "icc_ck": 0.91}
    assert {
        name: round(found.get("values", metric=name, grouping=None).value or 0.0, 2) for name in expected
    } == expected
    single = found.get("values", metric="icc_a1", grouping=None)
    assert single.low == pytest.approx(0.0268, abs=1e-3)  # McGraw and Wong's 0.0188 to 0.7611 covers too seldom
    assert single.high == pytest.approx(0.7448, abs=1e-3)
    assert single.method == "generalised pivot"


FEINSTEIN = [  # both, second only, first only, neither; kappa, PABAK
    ((40, 5, 10, 45), 0.700, 0.70),
    ((80, 5, 10, 5), 0.318, 0.70),
    ((45, 25, 15, 15), 0.130, 0.20),
    ((25, 5, 35, 35), 0.259, 0.20),
]


@pytest.mark.replication
@pytest.mark.parametrize(("counts", "kappa", "pabak"), FEINSTEIN)
def test_the_paradoxes_of_kappa(counts: tuple[int, ...], kappa: float, pabak: float) -> None:
    first = np.repeat([1, 0, 1, 0], counts)
    second = np.repeat([1, 1, 0, 0], counts)
    found = agreement(eh.Table({"r": first, "s": second}), raters=["r", "s"], **QUICK)
    assert found.get("values", metric="kappa", grouping=None).value == pytest.approx(kappa, abs=5e-4)
    assert found.get("values", metric="pabak", grouping=None).value == pytest.approx(pabak)
    parts = [found.get("values", metric=name, grouping=None).value for name in ("prevalence_part", "bias_part")]
    assert sum(part or 0.0 for part in parts) == pytest.approx(
        pabak - (found.get("values", metric="kappa", grouping=None).value or 0.0)
    )
    by_pair = {(record.first, record.second): record.n for record in found.counts}
    assert by_pair == dict(zip([("1", "1"), ("0", "1"), ("1", "0"), ("0", "0")], counts, strict=True))


def test_against_scikit_learn_and_krippendorff(ratings: pd.DataFrame, table: eh.Table) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="kappa is compared with scikit-learn's")
    krippendorff = pytest.importorskip("krippendorff", reason="alpha is compared with the package krippendorff")
    found = agreement(table, raters=["x", "y"], **QUICK)
    for group in ("A", "B"):
        own = ratings[ratings.group == group]
        assert found.get("values", metric="kappa", group=group).value == pytest.approx(
            metrics.cohen_kappa_score(own.x, own.y)
        )
    order = ["poor", "fair", "good", "best"]
    grades = agreement(table, raters=["grade_x", "grade_y"], scale="ordinal", categories=order, **QUICK)
    codes = [[order.index(grade) for grade in ratings[name]] for name in ("grade_x", "grade_y")]
    for weights in ("linear", "quadratic"):
        wanted = metrics.cohen_kappa_score(*codes, weights=weights)
        assert grades.get("values", metric=f"weighted_kappa_{weights}", grouping=None).value == pytest.approx(wanted)
    alpha = krippendorff.alpha(reliability_data=np.array(codes, float), level_of_measurement="ordinal")
    assert grades.get("values", metric="alpha", grouping=None).value == pytest.approx(alpha)
    scores = agreement(table, raters=["score_x", "score_y"], **QUICK)
    alpha = krippendorff.alpha(
        reliability_data=ratings[["score_x", "score_y"]].to_numpy().T, level_of_measurement="interval"
    )
    assert scores.get("values", metric="alpha", grouping=None).value == pytest.approx(alpha)


def test_against_statsmodels_and_pingouin(ratings: pd.DataFrame, table: eh.Table) -> None:
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater", reason="Fleiss' kappa is compared")
    found = agreement(table, raters=["x", "y", "z"], **QUICK)
    counted, _ = inter_rater.aggregate_raters(ratings[["x", "y", "z"]].to_numpy())
    assert found.get("values", metric="fleiss_kappa", grouping=None).value == pytest.approx(
        inter_rater.fleiss_kappa(counted)
    )
    mse = np.mean((ratings.score_y - ratings.score_x) ** 2)
    scores = agreement(table, raters=["score_x", "score_y"], **QUICK)
    assert scores.get("values", metric="mean_squared_error", grouping=None).value == pytest.approx(mse)
    spread = 2 * np.var(ratings[["score_x", "score_y"]].to_numpy())
    assert scores.get("values", metric="icc_spread", grouping=None).value == pytest.approx(1 - mse / spread)


# Intervals and the test of gaps ---------------------------------------------------------------------------


def test_a_gap_that_is_there_is_found(table: eh.Table) -> None:
    found = agreement(table, raters=["x", "y"])
    for name in ("kappa", "pabak"):
        gap = next(gap for gap in found.gaps if gap.metric == name)
        assert (gap.group, gap.reference) == ("A", "B")
        assert gap.value == pytest.approx(
            (found.get("values", metric=name, group="A").value or 0.0)
            - (found.get("values", metric=name, group="B").value or 0.0)
        )
        assert gap.high is not None
        assert gap.high < 0
        assert gap.p_value is not None
        assert gap.p_value < 0.01
        finding = next(f for f in found.findings if f.metric == name and f.kind == "difference")
        assert ("raters agree less about A" in finding.headline.text) == (name == "pabak")
        assert ("it is lower for A" in finding.headline.text) == (name == "kappa")
    assert not [gap for gap in found.gaps if gap.metric in ("bias_index", "prevalence_part")]


def test_the_standard_error_of_agreement_is_the_binomial_one(table: eh.Table, ratings: pd.DataFrame) -> None:
    found = agreement(table, raters=["x", "y"], resamples=20_000)
    gap = next(gap for gap in found.gaps if gap.metric == "agreement")
    share = (ratings.x == ratings.y).groupby(ratings.group).agg(["mean", "size"])
    expected = np.sqrt((share["mean"] * (1 - share["mean"]) / share["size"]).sum())
    assert gap.stderr == pytest.approx(expected, rel=0.03)


def test_thresholds(table: eh.Table) -> None:
    limits = [{"metric": "pabak", "max": 0.05}, {"metric": "kappa", "max": 1.9}]
    found = agreement(table, raters=["x", "y"], thresholds=limits, **QUICK)
    verdicts = {f.metric: f.verdict for f in found.findings if f.kind == "difference"}
    assert verdicts == {"kappa": "meets", "pabak": "does_not_meet"}
    with pytest.raises(ConfigError, match="the metric 'icc_a1' is not for binary ratings of 2 raters"):
        agreement(table, raters=["x", "y"], thresholds=[{"metric": "icc_a1", "max": 0.1}], **QUICK)
    with pytest.raises(ConfigError, match="`grouping` 'grop' of a threshold is not known"):
        agreement(table, raters=["x", "y"], thresholds=[{"metric": "pabak", "max": 0.1, "grouping": "grop"}], **QUICK)
    with pytest.raises(ConfigError, match="has no `model`"):
        agreement(table, raters=["x", "y"], thresholds=[{"metric": "pabak", "max": 0.1, "model": "m"}], **QUICK)
    with pytest.raises(ConfigError, match="which is not among `metrics`"):
        agreement(table, raters=["x", "y"], metrics="kappa", thresholds=[{"metric": "pabak", "max": 0.1}], **QUICK)


# Laws -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["polars", "pyarrow", "duckdb", "shuffled"])
@pytest.mark.parametrize("raters", [("x", "y"), ("score_x", "score_y"), ("grade_x", "grade_y")])
def test_any_engine_and_order_gives_the_same_bytes(ratings: pd.DataFrame, engine: str, raters: tuple[str, str]) -> None:
    makers: dict[str, Any] = {
        "polars": lambda: pl.from_pandas(ratings),
        "pyarrow": lambda: pa.Table.from_pandas(ratings, preserve_index=False),
        "duckdb": lambda: duckdb.from_df(ratings),
        "shuffled": lambda: ratings.sample(frac=1, random_state=3),
    }
    other = makers[engine]()
    written = [
        json.dumps(agreement(eh.Table(data, groups="group", weight="weight"), raters=raters, **QUICK).to_dict())
        for data in (ratings, other)
    ]
    assert written[0] == written[1]


def test_weights_are_people(ratings: pd.DataFrame) -> None:
    """Whole weights give the values of repeated rows, but for what depends on the number of people."""
    repeated = ratings.loc[ratings.index.repeat(ratings.weight)]
    weighted = agreement(eh.Table(ratings, groups="group", weight="weight"), raters=["x", "y"], **QUICK)
    plain = agreement(eh.Table(repeated, groups="group"), raters=["x", "y"], **QUICK)
    for one, other in zip(weighted.values, plain.values, strict=True):
        assert one.value == pytest.approx(other.value, abs=5e-3 if one.metric == "alpha" else 1e-12)


def test_the_order_of_raters_and_the_names_of_ratings_do_not_matter(ratings: pd.DataFrame, table: eh.Table) -> None:
    plain = agreement(table, raters=["x", "y"], **QUICK)
    turned = agreement(table, raters=["y", "x"], **QUICK)
    ratings["yes_x"] = np.where(ratings.x == 1, "yes", "no")
    ratings["yes_y"] = np.where(ratings.y == 1, "yes", "no")
    words = agreement(eh.Table(ratings, groups="group"), raters=["yes_x", "yes_y"], **QUICK)
    swapped = agreement(eh.Table(ratings, groups="group"), raters=["yes_x", "yes_y"], positive="no", **QUICK)
    for name in ("kappa", "pabak", "agreement", "ac1", "alpha"):
        values = [found.get("values", metric=name, grouping=None).value for found in (plain, turned, words, swapped)]
        assert values == pytest.approx([values[0]] * 4)
    assert swapped.get("values", metric="positive_agreement", grouping=None).value == pytest.approx(
        words.get("values", metric="negative_agreement", grouping=None).value
    )
    assert turned.get("values", metric="bias_index", grouping=None).value == pytest.approx(
        -(plain.get("values", metric="bias_index", grouping=None).value or 0.0)
    )


# Undefined and bad input ----------------------------------------------------------------------------------


def test_raters_who_never_differ_have_no_kappa() -> None:
    table = eh.Table({"a": [1] * 30, "b": [1] * 30, "g": ["x", "y"] * 15}, groups="g")
    found = agreement(table, raters=["a", "b"], **QUICK)
    assert found.get("values", metric="kappa", grouping=None).status.text == "undefined: all ratings are in one class"
    assert found.get("values", metric="pabak", grouping=None).value == 1.0
    assert found.get("values", metric="pabak", grouping=None).status.id == "core.ok"
    assert found.get("values", metric="pabak", grouping=None).low == pytest.approx(2 * 0.025 ** (1 / 30) - 1)
    assert next(gap for gap in found.gaps if gap.metric == "kappa").status.text.startswith("undefined: all ratings")
    assert found.section().parts


def test_one_score_for_everybody() -> None:
    found = agreement(eh.Table({"a": [0.5] * 9, "b": [0.5] * 9}), raters=["a", "b"], scale="interval", **QUICK)
    assert found.get("values", metric="icc_a1", grouping=None).status.text == "undefined: all scores are one number"
    assert found.get("values", metric="icc_spread", grouping=None).status.text == "undefined: all scores are one number"
    one = agreement(eh.Table({"a": [0.5], "b": [0.75]}), raters=["a", "b"], scale="interval", **QUICK)
    assert one.get("values", metric="icc_a1", grouping=None).status.text == "undefined: there is only one person"
    assert one.section().parts


def test_missing_ratings_are_refused_dropped_or_used(ratings: pd.DataFrame) -> None:
    ratings["x"] = ratings.x.astype(float)
    ratings.loc[ratings.index[:9], "x"] = np.nan
    table = eh.Table(ratings, groups="group")
    with pytest.raises(DataError, match=r"ratings are missing in 9 rows of 300 \('x' in 9\); leave these people out"):
        agreement(table, raters=["x", "y", "z"], **QUICK)
    dropped = agreement(table, raters=["x", "y", "z"], missing="drop", **QUICK)
    assert dropped.get("values", metric="alpha", grouping=None).n == 291
    assert dropped.left_out[0].n == 9
    kept = agreement(table, raters=["x", "y", "z"], missing="keep", **QUICK)
    assert kept.get("values", metric="alpha", grouping=None).n == 300
    assert (
        kept.get("values", metric="alpha", grouping=None).value
        != dropped.get("values", metric="alpha", grouping=None).value
    )
    two = agreement(table, raters=["x", "y"], missing="keep", **QUICK)
    assert two.get("values", metric="kappa", grouping=None).n == 291  # with one rating there is no pair
    ratings["score_x"] = ratings.score_x.where(ratings.index > 5)
    three = agreement(
        eh.Table(ratings.assign(score_z=ratings.score_y + 0.1)),
        raters=["score_x", "score_y", "score_z"],
        missing="keep",
        **QUICK,
    )
    assert three.get("values", metric="icc_a1", grouping=None).status.id == "core.ok"
    assert "different numbers of ratings" in three.get("values", metric="icc_ak", grouping=None).status.text
    assert three.get("values", metric="alpha", grouping=None).value is not None


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"raters": ["x"]}, "`raters` needs two or more columns; got 1"),
    ({"raters": ["x", "x"]}, "`raters` names the column 'x' twice"),
    ({"raters": ["x", "yy"]}, "'yy', which is not in the data"),
    ({"raters": ["x", "grade_x"]}, "some of the raters' ratings are numbers and others text"),
    ({"raters": ["grade_x", "grade_y"], "scale": "ordinal"}, "ratings of text have no order; list their values"),
    ({"raters": ["grade_x", "grade_y"], "categories": ["poor", "fair"]}, "is not one of `categories`"),
    ({"raters": ["grade_x", "grade_y"], "scale": "interval"}, "gave text, which the interval scale cannot hold"),
    ({"raters": ["grade_x", "grade_y"], "scale": "binary"}, "binary ratings have two values; these have 4"),
    ({"raters": ["x", "y"], "positive": "yes"}, "`positive` is 'yes', which no rater gave"),
    ({"raters": ["score_x", "score_y"], "scale": "nominal"}, "different values; use scale='interval'"),
    ({"raters": ["x", "y"], "metrics": "kapa"}, "there is no metric 'kapa'; did you mean 'kappa'"),
    ({"raters": ["x", "y"], "metrics": "icc_a1"}, "'icc_a1' is not for binary ratings of 2 raters"),
    ({"raters": ["x", "y"], "categories": [1]}, "`categories` must be two or more different values"),
    ({"raters": ["x", "y"], "scale": "interval", "categories": [0, 1]}, "`categories` do not go with the interval"),
    ({"raters": ["x", "y"], "scale": "nominal", "positive": 1}, "`positive` applies to binary ratings only"),
    ({"raters": ["x", "y"], "reference": "C"}, "`reference` 'C' is not a group"),
    (
        {"raters": ["x", "y"], "thresholds": [{"metric": "kappa", "min": 0.4}]},
        "must give max= of 0 or more and below 2",
    ),
    ({"raters": ["x", "y"], "thresholds": [{"metric": "kapa", "max": 0.4}]}, "`metric` 'kapa' of a threshold"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG, ids=[str(place) for place in range(len(WRONG))])
def test_what_cannot_be(table: eh.Table, settings: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        agreement(table, **settings, **QUICK)


def test_other_columns_that_cannot_be() -> None:
    with pytest.raises(DataError, match="hold no ratings"):
        agreement(eh.Table({"a": [None, None], "b": [None, None]}), raters=["a", "b"], **QUICK)
    with pytest.raises(DataError, match="gave infinite scores"):
        agreement(eh.Table({"a": [np.inf, 0.1, 0.2], "b": [0.3, 0.1, 0.2]}), raters=["a", "b"], **QUICK)
    with pytest.raises(DataError, match="nobody has the ratings of two raters"):
        agreement(eh.Table({"a": [1.0, None], "b": [None, 0.0]}), raters=["a", "b"], missing="drop", **QUICK)


def test_one_value_only_is_named() -> None:
    yes = agreement(eh.Table({"a": [1, 1], "b": [1, 1]}), raters=["a", "b"], **QUICK)
    assert yes.get("values", metric="prevalence_index", grouping=None).value == 1.0
    no = agreement(eh.Table({"a": [0, 0], "b": [0, 0]}), raters=["a", "b"], **QUICK)
    assert no.get("values", metric="prevalence_index", grouping=None).value == -1.0


def test_small_groups_are_left_out_and_told(ratings: pd.DataFrame) -> None:
    ratings.loc[ratings.index[:3], "group"] = "C"
    ratings.loc[ratings.index[3:33], "group"] = "D"
    found = agreement(eh.Table(ratings, groups="group"), raters=["x", "y"], **QUICK)
    assert any(record.group == "C" and record.n == 3 for record in found.left_out)
    assert any(
        "not tested, as" in note.text and "too few people in D are rated differently" in note.text
        for note in found.notes
    )


# The report -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raters", [("x", "y"), ("x", "y", "z"), ("score_x", "score_y"), ("grade_x", "grade_y")])
def test_the_section(table: eh.Table, raters: tuple[str, ...]) -> None:
    found = agreement(table, raters=raters, **QUICK)
    section = found.section()
    assert section.parts
    for part in section.parts:
        if isinstance(part, Figure):
            assert part.description
            assert all(to_svg(chart, "t", "d", name="x") for chart in part.charts)
        else:
            assert isinstance(part, DisplayTable)
            assert all(len(row) == len(part.columns) == len(part.numeric) for row in part.rows)
    assert found.plot().to_svg(name="x")
    assert len(found.findings) >= 2
    assert {title for title, _ in section.caveats} == {found.metrics[f.metric].title for f in found.findings}


def test_without_groups_everybody_is_described(ratings: pd.DataFrame) -> None:
    found = agreement(eh.Table(ratings), raters=["x", "y"], **QUICK)
    assert not found.gaps
    assert found.section().parts
    assert isinstance(found, AgreementResult)
    assert found.to_frame().metric.tolist()[:2] == ["kappa", "pabak"]
    with pytest.raises(ConfigError, match="`metric` got 'icc_a1'"):
        found.get("values", metric="icc_a1", grouping=None)


def test_every_metric_has_a_title_and_headlines_exist() -> None:
    assert len(METRICS) > 20
    for scale in SCALES:
        for raters in (2, 3):
            known = metrics_for(scale, raters)
            assert any(one.headline for one in known.values())
            assert all(one.title and (one.caveat or not one.compared) for one in known.values())
