"""Speed, memory and accuracy of individual fairness over all pairs.

1. Exact: ours, with three norms, against NumPy with full matrices and in tiles and SciPy's `cdist`, on 2,000 to
   200,000 people. Every line has its own process (for a separate peak memory), warmed up on 500 people; the time is the
   best of several wall times. Pairs per second count each unordered pair once. A peer is skipped if its matrices do not
   fit or it would take minutes; the line gives the reason.
2. Grid: time of the binning and of the rest on 1 and 10 million people, and its stated error. The true error is
   computed where the exact value is available (200,000 people, three kinds of data); above that the grid is compared
   with random pairs, an independent check that is much coarser. `--million` adds the exact value of 1 million people
   (minutes).
3. Audit: wall time of `eh.effort` on a pandas frame of 200,000 households with ids and two group columns, and the share
   of it in the loops over all pairs; middle of three runs.

`--threads` instead measures the exact value of 200,000 people with 1, 2, 4 ... threads, best of three.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from evenhand.stats.pairs import Distance, Norm, individual_fairness
from evenhand.stats.types import FloatArray

Crowd = tuple[FloatArray, FloatArray, FloatArray]  # score, effort, aggregate
WEIGHT = 0.5
SIZES = (2_000, 20_000, 100_000, 200_000)


def people(kind: str, n: int) -> Crowd:
    """Return people with scores independent of effort, smooth in it or polarised, or with atoms."""
    rng = np.random.default_rng(0)
    effort, aggregate = rng.beta(2, 3, n), np.tanh(rng.gamma(2, 0.4, n))
    if kind == "discrete":
        effort, aggregate = rng.integers(0, 9, n) / 8.3, rng.choice([0.0, 0.1, 0.13, 0.3, 0.5, 0.77, 0.8, 1.0], n)
    if kind == "mixed":
        atoms = rng.random(n) < 0.4
        effort, aggregate = np.where(atoms, rng.integers(0, 5, n) / 7.3, effort), np.where(atoms, 0.0, aggregate)
    steep, spread = {"smooth": (2.0, 0.2), "polarised": (20.0, 6.0)}.get(kind, (0.0, 1.0))
    return 1 / (1 + np.exp(-(steep * (effort + aggregate - 0.9) + spread * rng.standard_normal(n)))), effort, aggregate


def ours(crowd: Crowd, norm: Norm = "euclidean") -> float:
    """Return the exact value; also computes every person's row mean, the violations and the interval."""
    return individual_fairness(*crowd, weight=WEIGHT, method="strips", distance=Distance(norm)).value


def numpy_full(crowd: Crowd) -> float:
    """Return the mean over the upper triangle of full matrices."""
    m, e, s = crowd
    d = np.sqrt(WEIGHT * np.subtract.outer(e, e) ** 2 + (1 - WEIGHT) * np.subtract.outer(s, s) ** 2)
    excess = np.maximum(0.0, np.abs(np.subtract.outer(m, m)) - d)
    return float(1 - excess.sum() / (len(m) * (len(m) - 1)))


def scipy_full(crowd: Crowd) -> float:
    """Return the mean from two full `cdist` matrices."""
    from scipy.spatial.distance import cdist

    points = np.stack([np.sqrt(WEIGHT) * crowd[1], np.sqrt(1 - WEIGHT) * crowd[2]], axis=1)
    score = crowd[0][:, np.newaxis]
    excess = np.maximum(0.0, cdist(score, score, "cityblock") - cdist(points, points))
    return float(1 - excess.sum() / (len(score) * (len(score) - 1)))


def in_tiles(crowd: Crowd, tile: Callable[[FloatArray, FloatArray], float], size: int = 512) -> float:
    """Return the mean from tiles of the upper triangle."""
    columns = np.stack([crowd[0], np.sqrt(WEIGHT) * crowd[1], np.sqrt(1 - WEIGHT) * crowd[2]])
    n, total = columns.shape[1], 0.0
    for i in range(0, n, size):
        for j in range(i, n, size):
            total += tile(columns[:, i : i + size], columns[:, j : j + size]) * (1 if i == j else 2)
    return float(1 - total / (n * (n - 1)))


def numpy_tiles(crowd: Crowd) -> float:
    """Return the mean from NumPy tiles of 512."""

    def tile(a: FloatArray, b: FloatArray) -> float:
        d = np.sqrt(np.subtract.outer(a[1], b[1]) ** 2 + np.subtract.outer(a[2], b[2]) ** 2)
        return float(np.maximum(0.0, np.abs(np.subtract.outer(a[0], b[0])) - d).sum())

    return in_tiles(crowd, tile)


def scipy_tiles(crowd: Crowd) -> float:
    """Return the mean from `cdist` tiles of 512."""
    from scipy.spatial.distance import cdist

    def tile(a: FloatArray, b: FloatArray) -> float:
        apart = cdist(a[:1].T, b[:1].T, "cityblock") - cdist(a[1:].T, b[1:].T)
        return float(np.maximum(0.0, apart).sum())

    return in_tiles(crowd, tile)


RUNNERS: dict[str, Callable[[Crowd], float]] = {
    "ours": ours,
    "manhattan": partial(ours, norm="manhattan"),
    "maximum": partial(ours, norm="maximum"),
    "numpy_full": numpy_full,
    "scipy_full": scipy_full,
    "numpy_tiles": numpy_tiles,
    "scipy_tiles": scipy_tiles,
}
OURS = ("ours", "manhattan", "maximum")  # with three norms
MATRICES = {"numpy_full": 4, "scipy_full": 3}  # matrices of n x n float64 alive at once


def peak() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, kind: str, n: int, repeats: int) -> None:
    """Print one measurement as JSON: value, best wall and CPU seconds, memory added."""
    run, crowd = RUNNERS[name], people(kind, n)
    run(people(kind, 500))
    before, walls, cpus, value = peak(), [], [], 0.0
    for _ in range(repeats):
        wall, cpu = perf_counter(), process_time()
        value = run(crowd)
        walls.append(perf_counter() - wall)
        cpus.append(process_time() - cpu)
    print(json.dumps({"value": value, "wall": min(walls), "cpu": min(cpus), "memory": peak() - before}))


def child(*arguments: object) -> dict[str, float]:
    """Run one measurement in its own process."""
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def free_memory() -> float:
    """Return the free memory in MB; 4,000 if the system does not report it."""
    lines = Path("/proc/meminfo").read_text().splitlines() if Path("/proc/meminfo").exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("MemAvailable")), 4_000.0)


def why_not(name: str, n: int, quick: bool) -> str | None:
    """Return the reason for skipping a peer, or None."""
    need = MATRICES.get(name, 0) * n * n * 8 / 2**20
    if need > 0.75 * free_memory():
        return f"skipped: {need / 1024:,.0f} GB of matrices, {free_memory() / 1024:,.0f} GB free"
    if quick and need > 2_000:
        return "skipped: --quick"
    longest = 20_000 if quick else 100_000
    return (
        f"skipped: minutes ({(n / 100_000) ** 2:.0f} x the line at 100,000)"
        if name not in OURS and n > longest
        else None
    )


def exact(quick: bool) -> None:
    """Print the table of exact methods."""
    columns = f"{'wall s':>9}{'CPU s':>9}{'Gpairs/s':>10}{'MB added':>10}{'ours is':>9}"
    print(f"{'people':>8} {'method':13}{'scores':12}{columns}")
    for n in SIZES[:3] if quick else SIZES:
        base = 0.0
        plan = [("ours", "independent"), ("ours", "smooth"), ("ours", "polarised")]
        plan += [(name, "independent") for name in RUNNERS if name != "ours"]
        for name, kind in plan[:1] + plan[3:] if quick else plan:
            reason = why_not(name, n, quick)
            if reason is not None:
                print(f"{n:>8,} {name:13}{kind:12}  {reason}")
                continue
            repeats = 20 if n <= 2_000 else 3 if name in OURS else 1
            found = child(name, kind, n, repeats)
            base = base or found["wall"]
            rate = n * (n - 1) / 2 / found["wall"] / 1e9
            faster = f"{found['wall'] / base:8.1f}x" if name != "ours" else ""
            spent = f"{found['wall']:>9.4f}{found['cpu']:>9.4f}{rate:>10.3f}{found['memory']:>10.0f}{faster:>9}"
            print(f"{n:>8,} {name:13}{kind:12}{spent}  value {found['value']:.12f}", flush=True)


def accuracy(n: int, weights: Sequence[float]) -> None:
    """Print the grid's stated and true error where the exact value is available."""
    print(f"\n{'people':>8} {'data':13}{'weight':>7}{'stated error':>14}{'true error':>12}{'violated: true error':>22}")
    for kind in ("independent", "smooth", "polarised", "discrete", "mixed"):
        crowd = people(kind, n)
        for weight in weights:
            truth = individual_fairness(*crowd, weight=weight, method="blocks" if kind == "discrete" else "strips")
            grid = individual_fairness(*crowd, weight=weight, method="grid")
            off, hits = grid.value - truth.value, grid.violated - truth.violated
            print(f"{n:>8,} {kind:13}{weight:>7}{grid.error:>14.1e}{off:>12.1e}{hits:>22.1e}", flush=True)


def grid_times(n: int, million: bool) -> None:
    """Print the grid's time and its difference from random pairs (and from the exact value with `million`)."""
    from evenhand.stats.pairs import bin_people, check_people

    crowd = people("independent", n)
    checked, binning, whole, value, error = check_people(*crowd), [], [], 0.0, 0.0
    for _ in range(3):
        start = perf_counter()
        bin_people(checked)
        binning.append(perf_counter() - start)
        start = perf_counter()
        found = individual_fairness(*crowd, weight=WEIGHT, method="grid")
        whole.append(perf_counter() - start)
        value, error = found.value, found.error
    after = min(whole) - min(binning)
    sampled = individual_fairness(*crowd, weight=WEIGHT, method="sampled", rng=np.random.default_rng(1))
    print(
        f"{n:>10,} people: binning {min(binning):.2f} s, the rest {after:.2f} s, value {value:.8f}, error {error:.1e};"
    )
    print(f"{'':10}  random pairs differ by {value - sampled.value:+.1e} (their error {sampled.error:.1e})", flush=True)
    if million and n == 1_000_000:
        start = perf_counter()
        truth = individual_fairness(*crowd, weight=WEIGHT, method="strips").value
        print(f"{'':10}  exact {truth:.10f} in {perf_counter() - start:.0f} s: true error {value - truth:+.1e}")


def share_of_loops(n: int) -> None:
    """Print the time of an audit, and the share of the loops over all pairs in it; the goal is 80 %."""
    import evenhand as eh
    from evenhand.stats import workers
    from evenhand.stats.pairs import exact as strips

    spent, run_chains = [0.0], workers.run_chains

    def timed(*arguments: Any, **options: Any) -> None:
        start = perf_counter()
        run_chains(*arguments, **options)
        spent[0] += perf_counter() - start

    vars(strips)["run_chains"] = timed
    roles: dict[str, Any] = {"id": "household", "groups": ["race", "sex"], "predictions": {"logistic": "risk_logistic"}}
    trajectory = ["income_2019", "income_2020", "income_2021"]
    runs = []
    for size in (5_000, n, n, n):  # the first run compiles
        table = eh.Table(eh.datasets.make_households(size, seed=1, backend="pandas"), **roles)
        start, spent[0] = perf_counter(), 0.0
        eh.effort(table, method="strips", trajectory=trajectory, scale=200_000, unit=10_000)
        seconds = perf_counter() - start
        runs.append((spent[0] / seconds, seconds))
    share, seconds = sorted(runs[1:])[1]
    print(f"\n3. eh.effort, {n:,} households: {seconds:.2f} s, {share:.0%} in the loops over all pairs (goal 80 %)")


def by_threads(n: int) -> None:
    """Print the time of the exact value by number of threads."""
    from evenhand.stats.workers import thread_count

    crowd, one, value = people("independent", n), 0.0, 0.0
    ours(people("independent", 40_000))
    cores = thread_count(None)
    for threads in sorted({2**power for power in range(cores.bit_length())} | {cores}):
        seconds = []
        for _ in range(3):
            start = perf_counter()
            value = individual_fairness(*crowd, weight=WEIGHT, method="strips", threads=threads).value
            seconds.append(perf_counter() - start)
        one = one or min(seconds)
        rate = n * (n - 1) / 2 / min(seconds)
        print(
            f"{n:,} people, {threads:2} threads: {min(seconds):6.2f} s, {one / min(seconds):4.1f} x, {rate:.2g} pairs/s"
        )
    print(f"value {value!r}")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, under 30 s")
    parser.add_argument("--million", action="store_true", help="also the exact value of 1 million people (minutes)")
    parser.add_argument("--threads", action="store_true", help="only the exact value by 1, 2, 4 ... threads")
    parser.add_argument("--one", nargs=4, metavar=("METHOD", "SCORES", "N", "REPEATS"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        name, kind, n, repeats = options.one
        measure(name, kind, int(n), int(repeats))
        return 0
    if options.threads:
        by_threads(200_000)
        return 0
    exact(options.quick)
    accuracy(20_000 if options.quick else 200_000, (0.5,) if options.quick else (0.0, 0.5, 1.0))
    print()
    for n in (1_000_000,) if options.quick else (1_000_000, 10_000_000):
        grid_times(n, options.million)
    share_of_loops(20_000 if options.quick else 200_000)
    return 0


if __name__ == "__main__":
    sys.exit(main())
