"""Speed of the noise simulation.

One experiment has 31 noise levels x 5 folds x 2 groups on 6,167 people, with kappa, PABAK and ICC(A,1) for each cell.

- author: NumPy perturbs, scikit-learn predicts, one `pingouin.intraclass_corr` and one kappa per cell. Measured on six
  cells and multiplied by 310 / 6. (The study's version of pingouin was far slower: it fitted a regression with one
  dummy variable per person.)
- loop: an efficient script: NumPy perturbs, one `predict_proba` per level and fold, scikit-learn's kappa and the closed
  form of ICC.
- ours 1, ours 20: `evenhand.stats.noise.simulate`, one replicate, and the time per replicate when 20 run together, both
  including the base predictions. All statistics are computed from its sums.

CPU seconds (all threads), the best of several runs after one warm-up run. The last line is the paper's whole grid: ten
experiments, 100 replicates each, wall time on two threads.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.reliability_data import BINARY, NUMERIC, People, experiment, fitted, linear, people
from evenhand.stats.agreement import icc_a1
from evenhand.stats.noise import Predictor, published_names, replicate_seeds, simulate, thresholded
from evenhand.stats.types import FloatArray

LEVELS = np.round(np.arange(31) * 0.01, 5)
SETTING, SD = "raez-2024/all/1", 1.0


def perturbed(rows: FloatArray, level: float, rng: np.random.Generator) -> FloatArray:
    """Return rows with simulated errors, made by NumPy as in an ordinary script."""
    rows = rows.copy()
    for column in NUMERIC:
        rows[:, column] += (rng.random(len(rows)) < level) * np.rint(rng.normal(0, SD, len(rows)))
    for column in BINARY:
        rows[:, column] = np.abs(rows[:, column] - (rng.random(len(rows)) < level))
    return rows


def sensible_loop(crowd: People, models: Sequence[Any]) -> None:
    """Run one experiment with scikit-learn and the closed form of ICC."""
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(0)
    for fold, model in enumerate(models):
        own = crowd.fold == fold
        rows, group = crowd.features[own], crowd.group[own]
        x = model.predict_proba(rows)[:, 1]
        for level in LEVELS:
            y = model.predict_proba(perturbed(rows, float(level), rng))[:, 1]
            for g in (0, 1):
                at = group == g
                r, s = x[at] > 0.5, y[at] > 0.5
                _ = cohen_kappa_score(r, s), 2 * (r == s).mean() - 1, icc_a1(x[at], y[at])


def authors_cells(crowd: People, models: Sequence[Any], cells: int = 6) -> float:
    """Return the CPU seconds of some cells computed as the author did, or nan without pingouin."""
    try:
        pd, pingouin = import_module("pandas"), import_module("pingouin")
    except ImportError:
        return float("nan")
    from sklearn.metrics import cohen_kappa_score

    rng, start = np.random.default_rng(0), process_time()
    own = crowd.fold == 0
    rows, group, model = crowd.features[own], crowd.group[own], models[0]
    for cell in range(cells):
        noisy = perturbed(rows, 0.05 * (cell + 1), rng)
        at = group == cell % 2
        scores = [model.predict_proba(table)[at, 1] for table in (rows, noisy)]
        long = pd.DataFrame(
            {
                "person": np.tile(np.arange(at.sum()), 2),
                "rater": np.repeat([0, 1], at.sum()),
                "score": np.concatenate(scores),
            }
        )
        with warnings.catch_warnings(action="ignore"):
            pingouin.intraclass_corr(long, targets="person", raters="rater", ratings="score")
        cohen_kappa_score(scores[0] > 0.5, scores[1] > 0.5)
    return process_time() - start


def ours(crowd: People, models: tuple[Predictor, ...], replicates: int, setting: str = SETTING) -> None:
    """Run replicates of one experiment with all statistics."""
    done = simulate(
        experiment(crowd, models, setting), replicate_seeds(replicates, np.random.default_rng(0)), threads=1
    )
    counts = done.sums.counts()
    _ = counts.kappa(), counts.pabak(), done.sums.moments().icc_a1()


def best(run: Callable[[], None], repeats: int) -> float:
    """Return the least CPU seconds of several runs, after one warm-up run."""
    run()
    seconds = []
    for _ in range(repeats):
        start = process_time()
        run()
        seconds.append(process_time() - start)
    return min(seconds)


def probability(model: Any) -> Predictor:
    """Return a fitted classifier as a predictor."""
    return thresholded(lambda rows: model.predict_proba(rows)[:, 1])


class OnnxModel:
    """A fitted pipeline converted to ONNX."""

    def __init__(self, pipeline: Any) -> None:
        onnxruntime, skl2onnx = import_module("onnxruntime"), import_module("skl2onnx")
        converted = skl2onnx.to_onnx(pipeline, np.zeros((1, 13), dtype=np.float32), options={"zipmap": False})
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(converted.SerializeToString(), options)

    def predict_proba(self, rows: FloatArray) -> FloatArray:
        """Return the probabilities of both classes."""
        return np.asarray(self.session.run(["probabilities"], {"X": rows.astype(np.float32)})[0], dtype=np.float64)


def contestants(crowd: People, quick: bool) -> list[tuple[str, list[Any], tuple[Predictor, ...]]]:
    """Return each kind of model: its name, the models of the loop, and our predictors."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    logistic = fitted(crowd, LogisticRegression(solver="newton-cholesky", tol=1e-12))
    found: list[tuple[str, list[Any], tuple[Predictor, ...]]] = [
        ("logistic regression", logistic, tuple(linear(model) for model in logistic)),
        ("the same, any model", logistic, tuple(probability(model) for model in logistic)),
    ]
    trees = 20 if quick else 100
    for name, estimator in (
        (f"random forest, {trees}", RandomForestClassifier(trees, min_samples_leaf=5, random_state=0)),
        ("gradient boosting", HistGradientBoostingClassifier(max_iter=20 if quick else 100, random_state=0)),
    ):
        models = fitted(crowd, estimator)
        found.append((name, models, tuple(probability(model) for model in models)))
    try:
        as_onnx = [OnnxModel(model) for model in found[2][1]]
    except ImportError:
        print("ONNX needs the packages onnxruntime and skl2onnx, which are not installed: left out.")
    else:
        found.append((f"{found[2][0]}, ONNX", as_onnx, tuple(probability(model) for model in as_onnx)))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small models, few replicates: a look, not a measurement")
    options = parser.parse_args(argv)
    crowd = people()
    together, repeats = (4, 1) if options.quick else (20, 3)
    print(f"{len(crowd.features):,} people ({crowd.source}); CPU seconds of one experiment")
    heads = ("author", "loop", "ours 1", f"ours {together}", "loop/ours 1", f"loop/ours {together}")
    print(f"{'model':24}" + "".join(f"{head:>13}" for head in heads))
    logistic: tuple[Predictor, ...] = ()
    for name, models, predictors in contestants(crowd, options.quick):
        logistic = logistic or predictors
        author = authors_cells(crowd, models) * 310 / 6
        loop = best(lambda models=models: sensible_loop(crowd, models), 1)  # type: ignore[misc]
        one = best(lambda p=predictors: ours(crowd, p, 1), repeats)  # type: ignore[misc]
        many = best(lambda p=predictors: ours(crowd, p, together), repeats) / together  # type: ignore[misc]
        seconds = f"{author:13.2f}{loop:13.3f}{one:13.4f}{many:13.4f}"
        print(f"{name:24}{seconds}{loop / one:12.0f}x{loop / many:12.0f}x", flush=True)
    replicates = 10 if options.quick else 100
    for reading in ("raez-2024", "raez-2024-text"):
        start, cpu = perf_counter(), process_time()
        for setting in (name for name in published_names() if name.split("/")[0] == reading):
            trial = experiment(crowd, logistic, setting)
            simulate(trial, replicate_seeds(replicates, np.random.default_rng(0)), threads=2)
        wall, cpu = perf_counter() - start, process_time() - cpu
        print(f"ten experiments x {replicates} replicates, {reading}: {wall:.1f} s wall, {cpu:.1f} s CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
