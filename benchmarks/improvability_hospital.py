"""Tables 1 to 4 of the improvability paper on the full hospital data: `benchmarks/improvability_hospital.py [--quick]`.

It needs the full file (48,784 patients), which EVENHAND_DATA may name; where it is absent, it says so and stops. The
splits of the paper were not published, so its figures are met within the spread of its own five iterations. Linear
regression is table 1, lasso and random forest are tables 3 and 4, and the largest margins are table 2; the published
fairness test stands beside the signed one.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import evenhand as eh
from evenhand.datasets import available, load_hospital


def has_file() -> bool:
    """Tell whether EVENHAND_DATA names a folder with the full file."""
    path = next(data.local_path for data in available() if data.name == "hospital")
    return (Path(os.environ.get("EVENHAND_DATA") or "/nonexistent") / str(path)).is_file()


def main(argv: Sequence[str] | None = None) -> int:
    """Print one table: by candidate and split the values and p-values, and the largest margins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="linear regression on two splits only")
    options = parser.parse_args(argv)
    if not has_file():
        print("skipped: EVENHAND_DATA names no folder with the full hospital file (obermeyer/data_new.csv)")
        return 0
    frame = load_hospital("full", backend="polars")
    features = [name for name in frame.columns if name.endswith("_tm1")]
    result = eh.improvability(
        eh.Table(frame, groups="race"),
        status_quo="risk_score_t",
        outcome="gagne_sum_t",
        utility="calibration",
        capacity=0.03,
        features=features,
        test={"splits": 2 if options.quick else 5},
        jobs=2,
        candidates=["linear"] if options.quick else ["linear", "lasso", "random_forest"],
    )
    print(f"{'candidate':15}{'split':>6}  {'component':10}{'group':8}{'test':11}{'new':>8}{'old':>8}{'p':>9}")
    for r in result.gaps:
        values = [f"{value:8.3f}" if value is not None else " " * 8 for value in (r.model_value, r.reference_value)]
        head = f"{r.model:15}{r.split:>6}  {r.component:10}{r.group or '':8}{r.test or '':11}"
        print(f"{head}{values[0]}{values[1]}{r.p_value:9.4f}")
    for margin in result.margins:
        largest = "none" if margin.value is None else f"{margin.value:.3f}"
        print(f"{margin.model:15}largest margin, {margin.test}: {margin.metric} {margin.group} {largest}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
