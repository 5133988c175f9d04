"""Everything public beside whole audits: tables, saved audits that were tampered with, models, data, studies."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
import warnings
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

import evenhand as eh
from evenhand.report.formats import make_files
from evenhand.stats import agreement, correlation, effort, intervals, multiplicity, pairs, truth_serum

from . import laws
from .audits import Case, Target, cases
from .settings import ODD_VALUES, Settings, inside, one
from .tables import RECIPES, Columns, people, spoilt

SIMPLE: Settings = {"parity": {"metrics": ["selection_rate"], "resamples": 100, "min_count": 1}}


def sound_columns(size: int = 24) -> Columns:
    """Return a small sound table that is the same every time."""
    rng = np.random.default_rng(1)
    columns = {name: [make(row, int(rng.integers(256))) for row in range(size)] for name, make in RECIPES.items()}
    return {"g": [("a", "b")[row % 2] for row in range(size)], **columns}


# Saved audits ---------------------------------------------------------------------------------------------------------


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # and not a child that ends
        shutil.rmtree(folder, ignore_errors=True)


@cache
def saved(size: int = 24) -> Path:
    """Return the folder of an audit of so many people that was saved once, with a threshold and a report."""
    folder = Path(tempfile.mkdtemp(prefix="evenhand-fuzz-"))
    atexit.register(_remove, folder, os.getpid())
    table = eh.Table(sound_columns(size), outcome="y", groups=["g", "h"], predictions={"m": "s"})
    limited: Any = {**SIMPLE["parity"], "thresholds": [{"metric": "selection_rate", "max": 0.1}]}
    eh.audit(table, parity=limited).save(folder, formats=("html",))
    return folder


def copy_of_saved(folder: Path) -> Path:
    """Return a copy of the saved audit, to be damaged, beside one of other people."""
    shutil.copytree(saved(30), folder / "other")
    return Path(shutil.copytree(saved(), folder / "saved"))


@st.composite
def tampering(draw: DrawFn) -> Settings:
    """Draw a change of one of the files of a saved audit: a value somewhere in its tree, or bytes."""
    file = draw(one("results.json", "results.json", "results.json", "run.json", "report.html"))
    return {
        "file": file,
        "how": draw(one("none", "value", "value", "value", "removed", "bytes", "cut", "gone", "other")),
        "path": draw(st.lists(st.integers(0, 60), min_size=1, max_size=9)),
        "odd": draw(st.sampled_from([value for value in ODD_VALUES if _is_json(value)])),
        "sealed": draw(one(False, True, True)),
    }


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value).encode()
    except (TypeError, ValueError):
        return False
    return not isinstance(value, dict) or all(isinstance(name, str) for name in value)


def tamper(folder: Path, change: Settings) -> Path:
    """Change a copy of the saved audit; `sealed` writes its checksum anew, as somebody with a plan would."""
    place = copy_of_saved(folder)
    path = place / change["file"]
    content = path.read_bytes()
    match change["how"]:
        case "value" | "removed" if path.suffix == ".json":
            tree = json.loads(content)
            _change_tree(tree, change["path"], change["odd"], remove=change["how"] == "removed")
            content = json.dumps(tree).encode()
        case "bytes":
            content = content.replace(content[change["path"][0] : change["path"][0] + 3], b"\xff{\x00")
        case "cut":
            content = content[: len(content) * change["path"][0] // 61]
        case "other":
            content = json.dumps(change["odd"]).encode()
    if change["how"] == "gone":
        path.unlink()
        return place
    path.write_bytes(content)
    if change["sealed"] and change["file"] == "results.json":
        run = json.loads((place / "run.json").read_bytes())
        run["sha256"]["results.json"] = hashlib.sha256(content).hexdigest()
        (place / "run.json").write_text(json.dumps(run), encoding="utf-8")
    return place


def _change_tree(tree: Any, path: list[int], odd: Any, *, remove: bool) -> None:
    for depth, number in enumerate(path):
        keys = sorted(tree) if isinstance(tree, dict) else range(len(tree))
        key = keys[number % len(keys)]
        below = tree[key]
        if depth == len(path) - 1 or not isinstance(below, dict | list) or not below:
            if remove:
                del tree[key]
            else:
                tree[key] = odd
            return
        tree = below


def run_load(change: Settings, folder: Path) -> None:
    """Load a saved audit that may have been tampered with, and use it."""
    audit = eh.Audit.load(tamper(folder, change))
    audit.to_json()
    make_files(audit, ("html", "md"))
    for result in audit.results.values():
        assert isinstance(result.summary(), str)


# Tables, models, data -------------------------------------------------------------------------------------------------


def run_table(case: Case, folder: Path) -> None:
    """Make a table and look at it."""
    table = case.table(folder)
    assert table.rows >= 1
    assert len(table.cells.labels) >= 0


@st.composite
def array_settings(draw: DrawFn) -> Settings:
    """Draw the arguments of `Table.from_arrays`."""
    columns = draw(people(("y", "d", "s", "w")))
    given: Settings = {
        "y_true": columns["y"],
        draw(one("y_pred", "y_score")): columns["s"] if draw(st.booleans()) else columns["d"],
        "sensitive_features": draw(one(columns["g"], {"g": columns["g"]}, np.asarray(columns["g"]))),
        "sample_weight": draw(one(None, columns["w"])),
    }
    if draw(one(False, False, True)):
        name = draw(st.sampled_from(sorted(given)))
        given[name] = draw(one(*ODD_VALUES, columns["g"][:-1], np.asarray([columns["s"]] * 2)))
    return given


def run_arrays(given: Settings, _: Path) -> None:
    """Audit arrays."""
    laws.require_lawful(
        eh.parity(eh.Table.from_arrays(**given), metrics=["selection_rate"], resamples=100, min_count=1)
    )


@st.composite
def fit_settings(draw: DrawFn) -> Settings:
    """Draw the arguments of `cross_predict`."""
    columns = draw(people(("y", "age", "income", "id")))
    given: Settings = {"outcome": "y", "features": ["age", "income"], "fit": "logistic", "folds": 2, "id": None}
    flaw = draw(one(None, None, "data", "settings"))
    if flaw == "data":
        columns = draw(spoilt(columns))
    if flaw == "settings":
        name = draw(st.sampled_from(sorted(given)))
        given[name] = draw(inside(given[name], draw(st.sampled_from(ODD_VALUES))))
    return {"data": columns, **given}


def run_fit(given: Settings, _: Path) -> None:
    """Score people out of fold; scores are chances."""
    scores = eh.models.cross_predict(**given)
    columns = scores if isinstance(scores, dict) else {name: list(scores[name]) for name in scores.columns}
    assert all(0 <= float(score) <= 1 for score in columns["logistic"])


class Half:
    """A model that says the same of everybody."""

    classes_ = (0, 1)

    def predict_proba(self, rows: Any) -> Any:
        return np.full((len(rows), 2), 0.5)


def run_fitted(given: tuple[Any, Any, Any], _: Path) -> None:
    """Turn a model and rows into scores."""
    model, rows, positive = given
    assert np.asarray(eh.fitted(model, rows, positive=positive)).ndim == 1


def run_made(given: tuple[str, Any, Any, Any], _: Path) -> None:
    """Make invented data."""
    name, size, seed, backend = given
    made = getattr(eh.datasets, name)(size, seed=seed, backend=backend)
    assert len(made[next(iter(made))] if isinstance(made, dict) else made) > 0


# Studies --------------------------------------------------------------------------------------------------------------


@cache
def answers() -> Columns:
    """Return the answers of a few simulated people."""
    columns = eh.study.simulate_responses(8, conditions=["a", "b"], sets=1, seed=1).to_columns()
    return {name: list(column) for name, column in columns.items()}


@st.composite
def study_settings(draw: DrawFn) -> tuple[Columns, Settings]:
    """Draw answers of a study and the settings of its analysis."""
    given: Settings = {"resamples": 100, "min_count": 1}
    columns = answers()
    flaw = draw(one(None, "data", "settings"))
    if flaw == "data":
        columns = draw(spoilt(columns))
    if flaw == "settings":
        name = draw(st.sampled_from(sorted(eh.study.AnalysisSpec.model_fields)))
        given[name] = draw(st.sampled_from(ODD_VALUES))
    return columns, given


def run_study(case: tuple[Columns, Settings], _: Path) -> None:
    """Analyse answers."""
    columns, given = case
    laws.require_lawful(eh.study.analyze(columns, **given))


def run_cases(given: tuple[Columns, Settings, Settings], _: Path) -> None:
    """Deal cases to critics, and let them answer."""
    columns, settings, critics = given
    place: Settings = {"id": "id", "decision": "label", "groups": "g"}
    dealt = eh.study.assign_cases(columns, **place, **settings)
    assert eh.study.simulate_feedback(columns, dealt, **place, critics=critics).answers


def run_power(given: Settings, _: Path) -> None:
    """Work out the power of a study."""
    found = eh.study.power(**given)
    assert 0 <= found.low <= found.value <= found.high <= 1


# Kernels --------------------------------------------------------------------------------------------------------------

NUMBERS = st.lists(one(0.0, 1.0, 0.5, -1.0, 2.0, 1e-300, 1e300, 0.25), min_size=3, max_size=12)


@st.composite
def kernel_arguments(draw: DrawFn) -> tuple[str, list[Any]]:
    """Draw a kernel and arrays for it."""
    name = draw(st.sampled_from(sorted(KERNELS)))
    first = draw(NUMBERS)
    second = draw(st.lists(st.sampled_from(first), min_size=len(first), max_size=len(first)))
    return name, [first, second, draw(one(0.9, 0.5, 0.1, 0.999))]


def _unit(values: list[float]) -> Any:
    return np.abs(np.asarray(values)) % 1.0


def _bits(values: list[float]) -> Any:
    return (np.asarray(values) > 0.3).astype(int)


KERNELS: dict[str, Any] = {
    "cohen_kappa": lambda a, b, _: agreement.cohen_kappa(_bits(a), _bits(b)),
    "pabak": lambda a, b, _: agreement.pabak(_bits(a), _bits(b)),
    "icc_a1": lambda a, b, _: agreement.icc_a1(_unit(a), _unit(b)),
    "meng_z": lambda a, b, _: correlation.meng_z(0.5 * _unit(a)[0], 0.5 * _unit(b)[0], 0.1, len(a) + 3),
    "effort": lambda a, b, _: effort.effort_scores(np.stack([_unit(a), _unit(b), _unit(a)], axis=1)),
    "pairs": lambda a, b, _: pairs.individual_fairness(_unit(a), _unit(b), _unit(a), 0.5).value,
    "serum": lambda a, b, _: truth_serum.scores(_bits(a), np.column_stack([_unit(b), 1 - _unit(b)])),
    "wilson": lambda a, b, c: np.diff(np.ravel(intervals.wilson(_bits(a).mean(), len(a), c))),
    "holm": lambda a, b, _: multiplicity.adjusted_p(_unit(a)) - _unit(a),
}


def run_kernel(given: tuple[str, list[Any]], _: Path) -> None:
    """Compute a statistic of arrays: numbers, or nan where it is undefined."""
    name, arguments = given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=UserWarning)  # it says why a statistic is undefined
        found = np.asarray(KERNELS[name](*arguments), dtype=float)
    assert not np.isinf(found).any(), found
    if name in ("wilson", "holm"):
        assert all(isfinite(number) and number >= -laws.NEAR for number in np.ravel(found)), found


ODD = st.sampled_from(ODD_VALUES)
OTHERS: dict[str, Target] = {
    "eh.Audit.load": Target(tampering(), run_load, 2),
    "eh.Table": Target(cases(("parity",)), run_table, 4),
    "eh.Table.from_arrays": Target(array_settings(), run_arrays, 2),
    "eh.models.cross_predict": Target(fit_settings(), run_fit),
    "eh.fitted": Target(
        st.tuples(
            one(Half(), Half(), Half(), None, "logistic", object()),
            one([[1.0], [2.0]], [[0.0]], [], None, [["a"]]),
            one(None, None, 1, 0, *ODD_VALUES[:9]),
        ),
        run_fitted,
    ),
    "eh.datasets": Target(
        st.tuples(
            one("make_households", "make_defendants", "make_patients"),
            one(1, 2, 50, 50, 20, 10, 0, 0.5, "x", 2**70),
            one(0, 1, 2, 3, 2**40, -1, "x"),
            one(None, "pandas", "polars", "pyarrow", "x"),
        ),
        run_made,
    ),
    "eh.study.analyze": Target(study_settings(), run_study),
    "eh.study.assign_cases": Target(
        st.tuples(
            people(("id", "label")),
            st.fixed_dictionaries(
                {"per_critic": one(6, 8, 10, 12, 0), "per_case": one(1, 1, 2, -1), "cover": one(False, False, True)}
            ),
            one({}, {"disagree": 0.3}, {"groups": {"a": 0.4}}, {"disagree": 2}),
        ),
        run_cases,
    ),
    "eh.study.power": Target(
        st.fixed_dictionaries(
            {
                "people": one(10, 20, 5, 3, -1, "x", None),
                "studies": one(20, 50, 10, 1),
                "test": one("regression", "regression", "x"),
            }
        ),
        run_power,
    ),
    "kernels": Target(kernel_arguments(), run_kernel, 4),
}
