"""The audit itself on the COMPAS data: the paper's gaps, and their reversal when sex-race follows sex."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.reliability import ReliabilityResult

from .conftest import mean_gap, reliability

FILE = Path(os.environ.get("EVENHAND_DATA") or "/nonexistent") / "compas/friedler_numerical_binsensitive_slim.csv.gz"
pytestmark = [
    pytest.mark.replication,
    pytest.mark.skipif(not FILE.is_file(), reason="EVENHAND_DATA names no folder with the COMPAS files"),
]
NUMERIC = ["age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"]
AGES = ["age_cat_25 - 45", "age_cat_Greater than 45", "age_cat_Less than 25"]
QUICK: dict[str, Any] = {"replicates": 40, "resamples": 200, "reference": "non-White", "folds": 5}


@lru_cache
def people() -> pd.DataFrame:
    frame = pd.read_csv(FILE)
    frame["group"] = frame.race.map({0: "non-White", 1: "White"})
    return frame


def pipeline() -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    columns = ColumnTransformer([("numbers", StandardScaler(), NUMERIC)], remainder="passthrough")
    return make_pipeline(columns, LogisticRegression(solver="newton-cholesky", tol=1e-12))


@lru_cache
def audited(noise: str, linked: bool = False) -> ReliabilityResult:
    table = eh.Table(people(), groups="group", outcome="two_year_recid")
    features = [column for column in people().columns if column not in ("two_year_recid", "group")]
    follow: dict[str, Any] = {"linked": {"sex-race": ["sex", "race"]}} if linked else {}
    fixed = [*AGES, "race"] + ([] if linked else ["sex-race"])
    models = {"full": pipeline(), "sparse": {"estimator": "logistic", "features": ["age", "priors_count"]}}
    asked = models if noise == "raez-2024-text/all/1" and not linked else {"full": pipeline()}
    return reliability(asked, table, features=features, noise=noise, fixed=fixed, **follow, **QUICK)


@pytest.mark.slow
def test_the_gaps_of_the_paper_as_it_is_told() -> None:
    found = audited("raez-2024-text/all/1")
    kappa, pabak, icc, adjusted = (mean_gap(found, name, model="full") for name in found.spec.metrics)
    # Tolerances: four standard deviations between runs, of 40 replicates with common random numbers.
    assert kappa.value == pytest.approx(0.0024, abs=0.01)
    assert pabak.value == pytest.approx(0.0381, abs=0.008)
    assert icc.value == pytest.approx(-0.0058, abs=0.002)
    assert adjusted.value == pytest.approx(0.0026, abs=0.0012)
    assert kappa.p_value > 0.2
    assert max(pabak.p_value, icc.p_value) < 0.001
    assert any("'sex-race' is 'sex' times 'race' in every row" in note.text for note in found.notes)
    disagree = "the metrics disagree. For White, compared with non-White, "
    (told,) = (note.text for note in found.notes if note.text.startswith("full, ") and disagree in note.text)
    lower, _, higher = told.partition(" lower and ")
    assert "ICC(A,1) (clearly)" in lower
    assert "PABAK (clearly)" in higher


@pytest.mark.slow
def test_the_signs_turn_when_sex_race_follows_sex() -> None:
    found = audited("raez-2024/all/1", linked=True)
    expected = {"kappa": 0.044, "pabak": 0.069, "icc_a1": 0.0162}
    for name, value in expected.items():
        gap = mean_gap(found, name)
        assert gap.value == pytest.approx(value, abs=0.012 if name != "icc_a1" else 0.003)
        assert gap.low is not None
        assert gap.low > 0  # group 0 is lower by all three
    (warning,) = [note.text for note in found.notes if note.text.startswith("Warning")]
    assert "are each a function of 'age' in every row" in warning  # the bins of age are held fixed, as in the paper


@pytest.mark.slow
def test_sex_makes_most_of_the_pabak_gap() -> None:
    parts = [r for r in audited("raez-2024-text/all/1").attribution if (r.model, r.metric) == ("full", "pabak")]
    assert parts[0].noise_level == 0.2
    by_name = {record.feature: record for record in parts}
    assert by_name["sex"].share == pytest.approx(0.67, abs=0.15)
    assert by_name["sex"].value == pytest.approx(0.032, abs=0.008)


@pytest.mark.slow
def test_a_sparse_model_is_more_reliable_at_no_cost() -> None:
    found = audited("raez-2024-text/all/1")
    full, sparse = found.models
    assert full.auc == pytest.approx(0.730, abs=0.004)
    assert sparse.auc == pytest.approx(0.728, abs=0.004)
    at = {(r.model, r.group): r.value for r in found.values if (r.metric, r.noise_level) == ("kappa", 0.2)}
    assert at["full", "non-White"] == pytest.approx(0.813, abs=0.02)
    assert at["sparse", "non-White"] == pytest.approx(0.954, abs=0.012)
    assert at["sparse", "White"] == pytest.approx(0.949, abs=0.012)
