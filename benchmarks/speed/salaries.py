"""CPU seconds of comparing a million salaries by two groupings, with fairlearn's MetricFrame for comparison.

For salaries alone: mean, median and two quantiles. With a model: also the errors and the share within a tolerance, and
the same again with 250,000 clusters of four rows. evenhand's numbers have intervals, gaps and tests; fairlearn's mean,
median, MAE and RMSE have none. CPU seconds of all threads, the best of several runs, from the data to the result.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl

import evenhand as eh

ROWS = 1_000_000


def make_staff(rows: int) -> pd.DataFrame:
    """Return people with two groups, a lognormal salary and a prediction of it."""
    rng = np.random.default_rng(rows)
    staff = pd.DataFrame({"sex": rng.choice(["f", "m"], rows), "grade": rng.choice(list("abcd"), rows)})
    staff["salary"] = (rng.lognormal(10.5, 0.6, rows) * np.where(staff["sex"] == "m", 1.05, 1.0)).round()
    staff["person"] = rng.permutation(rows) // 4
    staff["predicted"] = 0.9 * staff["salary"] + rng.normal(4_000, 5_000, rows)
    return staff


def audit(data: Any, **more: Any) -> None:
    """Compare salaries and, with predictions, their errors."""
    table = eh.Table(data, groups=["sex", "grade"], outcome="salary", outcome_kind="number", **more)
    eh.parity(table, tolerance=5_000 if more else None)


def with_fairlearn(staff: pd.DataFrame) -> None:
    """Compute the metrics that fairlearn offers by both groupings."""
    from fairlearn.metrics import MetricFrame
    from sklearn.metrics import mean_absolute_error, root_mean_squared_error

    metrics: dict[str, Callable[..., Any]] = {
        "mean": lambda _y, predicted: np.mean(predicted),
        "median": lambda _y, predicted: np.median(predicted),
        "mae": mean_absolute_error,
        "rmse": root_mean_squared_error,
    }
    for group in ("sex", "grade"):
        sides = {"y_true": staff["salary"], "y_pred": staff["predicted"], "sensitive_features": staff[group]}
        frame = MetricFrame(metrics=metrics, **sides)
        frame.difference()


def runs(staff: pd.DataFrame, folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the names and functions to measure."""
    path = folder / "staff.parquet"
    staff.to_parquet(path)
    sources = {"pandas": staff, "Polars": pl.from_pandas(staff), "Parquet": path}
    for name, data in {**sources, "DuckDB": duckdb.read_parquet(str(path))}.items():
        yield f"{name}: salary alone", partial(audit, data)
        yield f"{name}: salary and a model", partial(audit, data, predictions="predicted")
        yield f"{name}: the same, four rows per person", partial(audit, data, predictions="predicted", cluster="person")
    yield "fairlearn: a model, no interval", partial(with_fairlearn, staff)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="100,000 rows, once")
    options = parser.parse_args(argv)
    rows, repeats = (100_000, 1) if options.quick else (options.rows, options.repeats)
    audit(make_staff(1_000), predictions="predicted")  # compiles the kernels
    staff = make_staff(rows)
    print(f"{rows:,} rows, CPU seconds")
    with tempfile.TemporaryDirectory() as folder:
        for name, run in runs(staff, Path(folder)):
            seconds = []
            for _ in range(1 if name.startswith("fairlearn") else repeats):
                before = process_time()
                run()
                seconds.append(process_time() - before)
            print(f"{name:34}{min(seconds):8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
