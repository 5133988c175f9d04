"""Exact pairs on a graphics card; it also runs where evenhand is not installed.

1. Agreement: three norms and weights against all pairs in float64 by NumPy (4,000 people), and single precision against
   double precision on the card (200,000 people of three kinds, comparing every block in both).
2. Bytes: five runs give the same bytes, also with other lots in the launch.
3. Time of the kernel by CUDA events, median of seven after a warm-up, on 1,000,000 people: the total alone, row sums
   with violations, and each person's largest excess; without skipping blocks ("every pair") and with skipping. Each
   pair counts once.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import platform
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import ROOT

NEEDS = "NumPy, CuPy and a graphics card"
PLACE = ROOT / "src" / "evenhand" / "stats" / "pairs" / "cuda.py"
spec = importlib.util.spec_from_file_location("evenhand_cuda", PLACE)
assert spec is not None
assert spec.loader is not None
cuda: Any = importlib.util.module_from_spec(spec)  # the module alone: the machine need not have evenhand
sys.modules[spec.name] = cuda
spec.loader.exec_module(cuda)


def people(kind: str, n: int, weight: float = 0.5, norm: str = "euclidean", weighted: bool = False) -> Any:
    """Return people as in `benchmarks/speed/pairs.py`, with their coordinates for a norm and a weight of effort."""
    rng = np.random.default_rng(0)
    effort, aggregate = rng.beta(2, 3, n), np.tanh(rng.gamma(2, 0.4, n))
    steep, spread = {"smooth": (2.0, 0.2), "polarised": (20.0, 6.0)}.get(kind, (0.0, 1.0))
    score = 1 / (1 + np.exp(-(steep * (effort + aggregate - 0.9) + spread * rng.standard_normal(n))))
    if norm == "maximum":
        effort, aggregate, weight = effort + aggregate, effort - aggregate, 0.5
    shares = (weight, 1 - weight) if norm != "euclidean" else (np.sqrt(weight), np.sqrt(1 - weight))
    survey = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    columns = [shares[0] * effort, shares[1] * aggregate, score]
    return cuda.Lot(*(column - column.mean() for column in columns), survey)


def truth(lot: Any, diamond: bool) -> tuple[Any, Any, Any]:
    """Return row sums, the weight of violations and each person's largest excess, in float64 by NumPy."""
    du, dv, dm = (np.abs(np.subtract.outer(x, x)) for x in lot[:3])
    x = dm - (du + dv if diamond else np.sqrt(du**2 + dv**2))
    excess = np.where(x > 1e-12, x, 0)
    return excess @ lot.weight, lot.weight @ (excess > 0) @ lot.weight / 2, excess.max(axis=1)


def agreement() -> dict[str, Any]:
    """Return the largest differences from float64, of individual fairness and of people's row means."""
    worst = {"value": 0.0, "row means": 0.0, "violated": 0.0, "total": 0.0, "largest": 0.0, "double: value": 0.0}
    for norm in ("euclidean", "manhattan", "maximum"):
        lots = [
            people("independent", 4_000, w, norm, weighted)
            for w in (0.0, 0.5, 0.6577, 1.0)
            for weighted in (False, True)
        ]
        diamond = norm != "euclidean"
        single = cuda.row_sums(lots, diamond=diamond, precise=False)
        double = cuda.row_sums(lots, diamond=diamond, precise=True)
        totals = cuda.totals(lots, diamond=diamond, precise=False)
        most = cuda.largest(lots, diamond=diamond, precise=False)
        for lot, (sums, violated), (exact, _), total, largest in zip(lots, single, double, totals, most, strict=True):
            rows, hits, biggest = truth(lot, diamond)
            w, heavy = lot.weight, lot.weight.sum()
            pairs = (heavy**2 - (w**2).sum()) / 2
            found = {
                "value": abs(w @ sums - w @ rows) / 2 / pairs,
                "row means": np.abs((sums - rows) / (heavy - w)).max(),
                "violated": abs(violated - hits) / pairs,
                "total": abs(total - w @ rows / 2) / pairs,
                "largest": np.abs(largest - biggest).max(),
                "double: value": abs(w @ exact - w @ rows) / 2 / pairs,
            }
            worst = {name: max(worst[name], float(found[name])) for name in worst}
    return worst


def large_agreement(n: int) -> list[dict[str, Any]]:
    """Return the differences between single and double precision on many people."""
    lines = []
    for kind in ("independent", "smooth", "polarised"):
        lot = people(kind, n)
        pairs = n * (n - 1) / 2
        (single, hits), (double, truly) = (
            cuda.row_sums([lot], diamond=False, precise=precise)[0] for precise in (False, True)
        )
        lines.append(
            {
                "people": n,
                "scores": kind,
                "value": 1 - float(double.sum()) / 2 / pairs,
                "value off": abs(float(single.sum() - double.sum())) / 2 / pairs,
                "row means off": float(np.abs(single - double).max() / (n - 1)),
                "violated off": abs(hits - truly) / pairs,
            }
        )
    return lines


def same_bytes(n: int) -> dict[str, Any]:
    """Return whether five runs, with and without other lots, give the same bytes."""
    lot, other = people("independent", n), people("smooth", n // 3)
    runs = [cuda.row_sums([lot], diamond=False, precise=False)[0] for _ in range(4)]
    runs.append(cuda.row_sums([other, lot], diamond=False, precise=False)[1])
    digests = {hashlib.sha256(sums.tobytes() + repr(hits).encode()).hexdigest() for sums, hits in runs}
    return {"people": n, "runs": len(runs), "different": len(digests)}


def kernel_times(plan: Any, mode: str) -> float:
    """Return the median time of the kernel in milliseconds."""
    import cupy

    times = []
    for turn in range(8):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        cuda._launch(plan, mode, None)
        end.record()
        end.synchronize()
        if turn:
            times.append(cupy.cuda.get_elapsed_time(begin, end))
    return float(np.median(times))


def speed(n: int) -> list[dict[str, Any]]:
    """Return kernel times for every norm and kind of people."""
    import cupy

    lines = []
    plans = [("euclidean", kind) for kind in ("independent", "smooth", "polarised")] + [("manhattan", "independent")]
    for norm, kind in plans:
        lot = people(kind, n, norm=norm)
        start = perf_counter()
        plan = cuda.plan_lots([lot], diamond=norm != "euclidean", precise=False)
        cupy.cuda.get_current_stream().synchronize()
        planned = perf_counter() - start
        every = replace(
            plan, boxes=cupy.tile(cupy.array([-9, -9, -9, 9, 9, 9], dtype=np.float32), (len(plan.boxes), 1))
        )
        for name, what in (("every pair", every), ("boxes", plan)):
            if name == "every pair" and kind != "independent":
                continue
            for mode in ("total", "rows", "largest"):
                ms = kernel_times(what, mode)
                rate = n * (n - 1) / 2 / ms * 1e3
                lines.append(
                    {"people": n, "norm": norm, "scores": kind, "compared": name, "mode": mode, "ms": ms, "rate": rate}
                )
                print(f"{n:>9,} {norm:10}{kind:12}{name:11}{mode:8}{ms:9.1f} ms {rate:10.3g} pairs/s", flush=True)
        print(f"{'':9} plan {planned * 1e3:.0f} ms", flush=True)
    several = [people("independent", n // 10, w) for w in np.linspace(0, 1, 11)]
    plan = cuda.plan_lots(several, diamond=False, precise=False)
    ms = kernel_times(plan, "rows")
    print(f"11 weights of {n // 10:,} people in one launch: {ms:.1f} ms", flush=True)
    lines.append({"people": n // 10, "lots": 11, "mode": "rows", "ms": ms})
    double = cuda.plan_lots([people("independent", n // 5)], diamond=False, precise=True)
    ms = kernel_times(double, "rows")
    print(f"double precision, {n // 5:,} people: {ms:.1f} ms", flush=True)
    return [*lines, {"people": n // 5, "mode": "rows", "precise": True, "ms": ms}]


def main() -> int:
    """Print the tables, and write them to a file if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    parser.add_argument("--people", type=int, default=1_000_000)
    options = parser.parse_args()
    reason = cuda.why_not()
    if reason is not None:
        print(f"No figures: {reason}.")
        return 1
    import cupy

    machine = {"card": cuda.describe(), "python": platform.python_version(), "numpy": np.__version__}
    machine |= {"cupy": cupy.__version__, "cuda": cupy.cuda.runtime.runtimeGetVersion()}
    figures: dict[str, Any] = {"machine": machine}
    print(machine, flush=True)
    for name, make in (
        ("agreement", agreement),
        ("large", lambda: large_agreement(options.people // 5)),
        ("bytes", lambda: same_bytes(options.people // 10)),
        ("speed", lambda: speed(options.people)),
    ):
        figures[name] = make()
        if name != "speed":
            print(f"{name}: {json.dumps(figures[name], indent=1)}", flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
