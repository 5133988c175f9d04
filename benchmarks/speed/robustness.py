"""The robustness analysis beside repeated calls of the audit.

The data are synthetic households with three models and two groupings. The default choices give 432 specifications of
individual fairness and 144 of the parity by effort. `ours` computes all of them. `afresh` calls `effort` once for each
specification: the 432 also give the parity at the audit's own bins, so that 552 calls are needed; only a few, evenly
spread over them, are made (without the lists of the people treated worst) and their mean time is multiplied by 552: an
extrapolation. Such a call also computes intervals and the curve over weights, which the analysis does not. `differs`
is the largest difference between the two over the specifications that both computed. Every line has its own process,
warmed up on 500 people, for a separate peak memory. Above 20,000 people individual fairness comes from the grid, and
the error it states is printed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from time import perf_counter, process_time
from typing import Any

import numpy as np

import evenhand as eh
from evenhand.audits.effort import EffortSpec, effort
from evenhand.audits.effort.choices import Choices, Grid
from evenhand.audits.effort.gather import gather
from evenhand.audits.effort.result import SpecificationRecord
from evenhand.audits.effort.robustness import (
    explore,
    fairest_records,
    flip_records,
    specification_records,
)

YEARS = [f"income_{year}" for year in range(2019, 2023)]
MODELS = ("xgboost", "logistic", "random_forest")
RATES = {"White": 13, "Asian": 14, "Pacific Islander": 25, "American Indian": 36, "Black": 39, "Hispanic": 33}
SPEC = EffortSpec(trajectory=YEARS, inertia=RATES, unit=10_000, scale=200_000, weights=(0.6577,))
Call = dict[str, Any]  # the arguments of `effort` that a specification sets


def table(n: int) -> eh.Table:
    """Return synthetic households."""
    frame = eh.datasets.make_households(n, seed=0)
    return eh.Table(frame, groups=["race", "sex"], predictions={model: f"risk_{model}" for model in MODELS})


def ours(data: eh.Table) -> list[SpecificationRecord]:
    """Return every specification of the whole analysis of a table."""
    curves = explore(data, gather(data, SPEC), SPEC, Choices())
    assert all(list(fairest_records(curve)) and list(flip_records(curve)) for curve in curves)
    return [record for curve in curves for record in specification_records(curve, YEARS)]


def calls(grid: Grid) -> list[Call]:
    """Return one call of `effort` for each specification that no other call includes."""
    common = list(product(grid.window.options, grid.measure.options, grid.inertia.options))
    own = [(SPEC.width, SPEC.min_count)]
    others = [pair for pair in product(grid.width.options, grid.min_count.options) if pair not in own]
    plan = [(*c, *ws, *own[0]) for c in common for ws in product(grid.weight.options, grid.scale.options)]
    plan += [(*c, SPEC.weights[0], SPEC.scale, *pair) for c in common for pair in others]
    return [
        {
            "trajectory": YEARS[window[0] : window[1] + 1],
            "measure": measure,
            "inertia": RATES if inertia == "given" else None,
            "weights": [weight],
            "scale": scale,
            "width": width,
            "min_count": min_count,
            "unit": SPEC.unit,
            "worst": 0,
        }
        for window, measure, inertia, weight, scale, width, min_count in plan
    ]


def difference(call: Call, result: Any, found: list[SpecificationRecord]) -> float:
    """Return the largest difference between one call's result and the analysis."""
    inertia = "given" if call["inertia"] else "none"
    place = (call["trajectory"][0], call["trajectory"][-1], call["measure"], inertia)
    bins = {
        (r.model, r.grouping): min(
            b.value
            for b in result.rows("gaps", metric="eagf", model=r.model, grouping=r.grouping)
            if b.bin_low is not None and b.value is not None
        )
        for r in result.rows("gaps", metric="eagf")
    }
    apart = [0.0]
    for r in found:
        if (r.window_first, r.window_last, r.measure, r.inertia) != place or r.value is None:
            continue
        if (r.weight, r.scale) == (call["weights"][0], call["scale"]):
            apart += [abs(r.value - i.value) for i in result.rows("values", metric="eaif", model=r.model)]
        elif (r.width, r.min_count) == (call["width"], call["min_count"]):
            apart.append(abs(r.value - bins[r.model, str(r.grouping)]))
    return max(apart)


def peak() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(way: str, n: int, made: int) -> None:
    """Print one measurement as JSON."""
    plan = calls(Choices().grid(SPEC, YEARS))
    small, data = table(500), table(n)
    ours(small)
    effort(small, **plan[0])
    before, wall, cpu = peak(), perf_counter(), process_time()
    chosen = [plan[at] for at in np.linspace(0, len(plan) - 1, made).round().astype(int).tolist()]
    results = [effort(data, **call) for call in chosen]
    found = ours(data) if way == "ours" else None
    spent = {"wall": perf_counter() - wall, "cpu": process_time() - cpu, "added": peak() - before, "peak": peak()}
    error = 0.0 if found is None else max(record.error or 0.0 for record in found)
    found = found or ours(data)
    apart = max([difference(call, result, found) for call, result in zip(chosen, results, strict=True)], default=0.0)
    print(json.dumps({**spent, "needed": len(plan), "apart": apart, "error": error}))


def child(way: str, n: int, made: int) -> dict[str, float]:
    """Run one measurement in its own process."""
    command = [sys.executable, __file__, "--one", way, str(n), str(made)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2,000 people and 3 calls: a look, not a measurement")
    parser.add_argument("--calls", type=int, default=8, help="calls of the audit that are made")
    parser.add_argument("--one", nargs=3, metavar=("WAY", "N", "CALLS"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        measure(options.one[0], int(options.one[1]), int(options.one[2]))
        return 0
    columns = f"{'wall s':>9}{'CPU s':>9}{'MB added':>10}{'MB peak':>9}{'ratio':>8}{'differs':>10}{'error':>10}"
    print(f"{'people':>8} {'way':44}{columns}")
    for n in (2_000,) if options.quick else (2_000, 10_000, 50_000):
        mine = child("ours", n, 0)
        error = f"{mine['error']:>10.0e}" if mine["error"] else f"{'exact':>10}"
        print(f"{n:>8,} {'ours: 576 specifications':44}{_times(mine, 1.0)}{'':>18}{error}", flush=True)
        made = 3 if options.quick else options.calls
        other = child("afresh", n, made)
        scale = other["needed"] / made
        way = f"afresh: {other['needed']:.0f} calls, extrapolated from {made}"
        ratio = other["wall"] * scale / mine["wall"]
        print(f"{n:>8,} {way:44}{_times(other, scale)}{ratio:>7.1f}x{other['apart']:>10.0e}", flush=True)
    return 0


def _times(found: dict[str, float], scale: float) -> str:
    spent = f"{found['wall'] * scale:>9.1f}{found['cpu'] * scale:>9.1f}"
    return f"{spent}{found['added']:>10.0f}{found['peak']:>9.0f}"


if __name__ == "__main__":
    sys.exit(main())
