"""The whole effort audit on a graphics card.

The data are synthetic households with two models, three weights of effort, worst pairs and the curve over weights. Each
audit runs on the card three times and on the processor once (also exactly, up to `--exact` people). Printed are the
largest difference of any number in any table, whether the runs on the card gave the same bytes, and the time of each
(the median of three). The curve over weights has a separate line: above 20,000 people the processor computes it from a
grid, with a stated error, and the card computes it exactly.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import evenhand as eh
from evenhand.stats.pairs import cuda
from evenhand.stats.pairs.device import Device
from evenhand.stats.pairs.distance import Norm
from evenhand.stats.pairs.fairness import Method

NEEDS = "CuPy and a graphics card"


def audit(n: int, norm: Norm, device: Device, method: Method) -> tuple[dict[str, Any], float]:
    """Return the records of the effort audit of `n` households, and its seconds."""
    table = eh.Table(
        eh.datasets.make_households(n, seed=1, backend="pandas"),
        groups=["sex", "race"],
        id="household",
        predictions={"xgboost": "risk_xgboost", "logistic": "risk_logistic"},
    )
    start = perf_counter()
    result = eh.effort(
        table,
        trajectory=[f"income_{year}" for year in range(2019, 2023)],
        unit=10_000,
        scale=200_000,
        weights=(0.25, 0.5, 0.75),
        distance=norm,
        device=device,
        method=method,
        individuals=True,
    )
    return result.to_dict(), perf_counter() - start


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number in the records with its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{path}/{key}")
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from numbers(inner, f"{path}/{place}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def difference(one: Any, other: Any) -> tuple[float, str]:
    """Return the largest difference between two tables (absolute up to 1, else relative), and its path."""
    first, second = dict(numbers(one)), dict(numbers(other))
    if first.keys() != second.keys():
        return math.inf, sorted(first.keys() ^ second.keys())[0]
    gaps = ((abs(first[key] - second[key]) / max(1.0, abs(first[key])), key) for key in first)
    return max(gaps, default=(0.0, ""))


def main() -> int:
    """Print a line for each audit, and write the lines to a file if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, nargs="*", default=[20_000, 200_000, 1_000_000])
    parser.add_argument("--exact", type=int, default=200_000, help="compare with all pairs on the processor up to here")
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    options = parser.parse_args()
    reason = cuda.why_not()
    if reason is not None:
        print(f"No figures: {reason}.")
        return 1
    machine = {"card": cuda.describe(), "python": platform.python_version(), "cores": os.cpu_count()}
    lines = []
    for n in options.people:
        for norm in ("euclidean", "manhattan", "maximum"):
            audit(2_000, norm, "cuda", "strips")  # compiled before it is timed
            runs = [audit(n, norm, "cuda", "strips") for _ in range(3)]
            card = runs[0][0]
            same = len({json.dumps(records) for records, _ in runs}) == 1
            line = {"people": n, "norm": norm, "same bytes": same, "card s": median(seconds for _, seconds in runs)}
            if n <= options.exact:
                processor, line["processor s"] = audit(n, norm, "cpu", "strips")
                curve, curves = processor.pop("curve"), card.pop("curve")
                line["largest difference"], line["where"] = difference(processor, card)
                line["of the curve"] = max(abs(a["value"] - b["value"]) for a, b in zip(curve, curves, strict=True))
            print(line, flush=True)
            lines.append(line)
    if options.out is not None:
        options.out.write_text(json.dumps({"machine": machine, "audits": lines}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
