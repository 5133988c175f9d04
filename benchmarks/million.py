"""All six audits of a million made-up households, by section: `python benchmarks/million.py [--rows N] [--spark]`.

Households get two raters, critics of 25 answers each and a decision; a model is refitted for reliability and for
improvability. Each line has the seconds and CPU seconds of a section and the peak of memory so far, of one run.
`--spark` audits the same rows on two workers too, from a Parquet file, and tells whether `results.json` is the same.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import evenhand as eh

ROLES: dict[str, Any] = {
    "id": "household",
    "outcome": "missed_payment",
    "groups": ["race", "sex"],
    "predictions": {"boosting": "risk_xgboost"},
    "favourable": "not_selected",
}
SECTIONS: dict[str, dict[str, Any]] = {
    "parity": {},
    "effort": {"trajectory": ["income_2019", "income_2020", "income_2021", "income_2022"], "scale": 100_000},
    "disagreement": {"decision": "label", "critic": "critic", "disagree": "disagree"},
    "reliability": {
        "model": "logistic",
        "features": ["age", "income_2021", "income_2022"],
        "noise": {"features": {"age": 5, "income_2022": 5_000}, "noise_levels": [0, 0.1, 0.3]},
        "replicates": 5,
    },
    "agreement": {"raters": ["rater_a", "rater_b"]},
    "improvability": {
        "status_quo": "refused",
        "grouping": "sex",
        "features": ["age", "income_2021", "income_2022"],
        "candidates": "logistic",
        "capacity": 0.2,
    },
}


def households(rows: int) -> Any:
    """Return households with what two raters, critics and a bank said of them, as a pandas frame."""
    data, rng = eh.datasets.make_households(rows, backend="pandas"), np.random.default_rng(19)
    risk, black = data["risk_xgboost"].to_numpy(), (data["race"] == "Black").to_numpy()
    first = (rng.random(rows) < risk).astype(int)
    return data.assign(
        rater_a=first,
        rater_b=np.where(rng.random(rows) < 0.9 - 0.1 * black, first, 1 - first),
        label=np.where(risk > 0.3, "high", "low"),
        critic=np.arange(rows) // 25,
        disagree=(rng.random(rows) < 0.2 + 0.1 * black).astype(int),
        refused=(risk > 0.35).astype(int),
    )


def measure(source: Any, name: str) -> dict[str, Any]:
    """Print what each section costs, and return what all of them found."""
    print(f"\n{name:16}{'seconds':>9}{'CPU':>8}{'peak, MB':>10}", flush=True)
    found, totals = {}, np.zeros(2)
    for section, settings in SECTIONS.items():
        start = np.array([perf_counter(), process_time()])
        asked: dict[str, Any] = {section: settings}
        audit = eh.audit(eh.Table(source, **ROLES), **asked)
        spent = np.array([perf_counter(), process_time()]) - start
        totals += spent
        found[section] = json.loads(audit.to_json())
        print(f"{section:16}{spent[0]:9.1f}{spent[1]:8.1f}{_peak():10.0f}", flush=True)
    print(f"{'all six':16}{totals[0]:9.1f}{totals[1]:8.1f}{_peak():10.0f}", flush=True)
    return found


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def on_spark(data: Any, here: dict[str, Any]) -> None:
    """Audit the same rows on two workers of Spark, and hold the results against those of pandas."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "households.parquet"
        data.to_parquet(path, index=False)
        session = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
        spark = session.config("spark.sql.ansi.enabled", "true").getOrCreate()
        there = measure(spark.read.parquet(str(path)), "Spark, 2 workers")
        spark.stop()
    for section, found in here.items():
        same = json.dumps(found, sort_keys=True) == json.dumps(there[section], sort_keys=True)
        print(f"{section:16}{'equal results' if same else 'DIFFERENT RESULTS'}")


def main() -> None:
    """Measure the rows in memory, and on Spark where asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", choices=list(SECTIONS), help="one section")
    parser.add_argument("--spark", action="store_true", help="the same on two workers of Spark")
    given = parser.parse_args()
    if given.only:
        for name in set(SECTIONS) - {given.only}:
            del SECTIONS[name]
    data = households(given.rows)
    here = measure(data, f"{given.rows:,} rows")
    if given.spark:
        on_spark(data, here)


if __name__ == "__main__":
    main()
