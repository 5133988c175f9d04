"""The cost of every audit, with a peer measured in the same run.

Writes `benchmarks/results/audits.json` and `docs/benchmarks.md` (`--quick` and `--only` write nothing, `--page` only
the page). Our figures are the median of three runs, a peer's are of one run. Each run has its own process, warmed up on
500 rows. Memory is the growth of that process's peak; the table is made before. A peer that is not installed is left
out; `PEERS=/one/python:/other/python make bench` looks for peers in other environments too, since some of them need
older libraries. A row is marked when it takes a third more CPU time than its last committed figure on this machine.
First calls use 2,000 rows: in a new process with an empty cache of compiled loops, and then in another new process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks import RESULTS, ROOT
from benchmarks.speed._audits.page import FIRST, page
from benchmarks.speed._audits.peers import (
    aequitas_rates,
    aif360_rates,
    disagreeing_shares,
    fairlearn_boots,
    fairlearn_rates,
    frame,
    holisticai_rates,
    numpy_tiles,
    perturbing_loop,
    pingouin_and_statsmodels,
    resampling_loop,
    scipy_boots,
)

SELF = ("-m", "benchmarks.speed.audits")
FIGURES, PAGE = RESULTS / "audits.json", ROOT / "docs" / "benchmarks.md"
OURS = ("numpy", "scipy", "numba", "duckdb", "pandas")
WARM_UP, RUNS = 500, 3
SIZES, QUICK = (10_000, 100_000, 1_000_000), (2_000, 10_000)

ROLES: dict[str, Any] = {"id": "id", "outcome": "outcome", "groups": ["race", "sex"], "predictions": {"risk": "risk"}}


# Ours -----------------------------------------------------------------------------------------------------------------


def audit(name: str, *first: Any, **settings: Any) -> Callable[[Any], None]:
    """Return a function that audits a frame up to the finished result; `first` are arguments before the table."""

    def run(data: Any) -> None:
        import evenhand as eh

        getattr(eh, name)(*first, eh.Table(data, **ROLES), **settings)

    return run


# The table ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One line of the page: an audit, the sizes it is run at, and peers that compute some of the same.

    Parameters
    ----------
    what : a description of what is computed.
    ours : the function that audits a frame.
    peers : peers by name: the function they run, their largest size, and the divisor of their time.
    most : the largest size of our own audit.
    power : the smallest power of the number of rows with which the cost grows for large tables.
    """

    what: str
    ours: Callable[[Any], None]
    peers: dict[str, tuple[Callable[[Any], None], int, float]] = field(default_factory=dict)
    most: int = SIZES[-1]
    power: float = 1.0


_EFFORT = {"trajectory": ["y1", "y2", "y3"], "scale": 100}
_NOISE = {"features": {"age": 5, "income": 3}, "noise_levels": [0, 0.1, 0.3]}
ROWS = {
    "parity": Row(
        "group rates of one model by two columns, with intervals and joint intervals (the peers: without intervals)",
        audit("parity", metrics=["selection_rate", "tpr", "fpr"]),
        {
            "fairlearn": (fairlearn_rates, 1_000_000, 1),
            "aequitas": (aequitas_rates, 1_000_000, 1),
            "aif360": (aif360_rates, 1_000_000, 1),
            "holisticai": (holisticai_rates, 1_000_000, 1),
        },
    ),
    "resamples": Row(
        "10,000 bootstrap resamples of three rates (fairlearn: its values and 2 resamples, counted as 3, x 3,333; "
        "SciPy: 20, x 500)",
        audit("parity", metrics=["selection_rate", "tpr", "fpr"], interval="percentile", resamples=10_000),
        {"fairlearn": (fairlearn_boots, 100_000, 3 / 10_000), "SciPy": (scipy_boots, 1_000_000, 20 / 10_000)},
    ),
    "effort": Row(
        "individual fairness over all pairs, parity by effort, curve over weights (the peer: one sum over all pairs)",
        audit("effort", **_EFFORT),
        {"NumPy in tiles": (numpy_tiles, 10_000, 1)},
    ),
    "exact pairs": Row(
        "the same audit with every pair compared, without a grid",
        audit("effort", method="strips", **_EFFORT),
        {"NumPy in tiles": (numpy_tiles, 10_000, 1)},
        most=100_000,
        power=2.0,
    ),
    "agreement": Row(
        "kappa, PABAK, AC1, alpha of two raters by two columns, gaps tested (the peers: only kappa and ICC)",
        audit("agreement", raters=["rater_a", "rater_b"]),
        {"pingouin and statsmodels": (pingouin_and_statsmodels, 100_000, 1)},
    ),
    "disagreement": Row(
        "six metrics from agree or disagree, with one answer per case and with intervals, and also for each critic "
        "with at most 1,000 critics, as at 10,000 rows (the peer: the shares behind the bounds, without intervals)",
        audit("disagreement", decision="label", critic="critic", disagree="disagree", resamples=200),
        {"a group-by of pandas": (disagreeing_shares, 1_000_000, 1)},
    ),
    "reliability": Row(
        "a logistic model refitted in five folds, three levels of noise, five replicates (the peer: without tests)",
        audit("reliability", "logistic", features=["age", "income"], noise=_NOISE, replicates=5),
        {"a loop of scikit-learn": (perturbing_loop, 1_000_000, 1)},
        most=100_000,
    ),
    "improvability": Row(
        "could a logistic rule be fairer and no worse? (the peer: 20 resamples, x 500 for 10,000)",
        audit(
            "improvability",
            status_quo="hired",
            grouping="sex",
            features=["age", "income"],
            candidates="logistic",
            capacity=0.4,
        ),
        {"a loop of pandas": (resampling_loop, 1_000_000, 20 / 10_000)},
    ),
}


def measure(row: str, who: str, rows: int, runs: int) -> dict[str, float]:
    """Return seconds, CPU seconds and megabytes of one contestant; called in a separate process."""
    run = ROWS[row].ours if who == "evenhand" else ROWS[row].peers[who][0]
    run(frame(WARM_UP))
    data = frame(rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    walls, cpus = [], []
    for _ in range(runs):
        wall, cpu = perf_counter(), process_time()
        run(data)
        walls.append(perf_counter() - wall)
        cpus.append(process_time() - cpu)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {"wall": median(walls), "cpu": median(cpus), "memory": memory}


def child(python: str, *arguments: object) -> dict[str, float] | None:
    """Return the result of `measure` from a separate process of this Python; None if the peer is not installed."""
    command = [python, *SELF, "--measure", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        missing = "ModuleNotFoundError" in done.stderr or "ImportError" in done.stderr
        if not missing:
            print(done.stderr.strip().splitlines()[-1], flush=True)
        return None
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def first_call(row: str) -> dict[str, float]:
    """Return the CPU seconds of an audit's first call, including imports, and of its second; called separately."""
    data, spent = frame(FIRST), [process_time()]
    for _ in range(2):
        ROWS[row].ours(data)
        spent.append(process_time())
    return {"first": spent[1] - spent[0], "again": spent[2] - spent[1]}


def first_calls(names: list[str]) -> dict[str, Any]:
    """Return the cost of first calls with an empty cache of compiled loops, and with the cache filled before."""
    found = {}
    for name in names:
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, *SELF, "--first", name]
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            runs = [subprocess.check_output(command, cwd=ROOT, text=True, env=environment) for _ in range(2)]
            cold, warm = (json.loads(run.splitlines()[-1]) for run in runs)
        found[name] = {"cold": cold["first"], "warm": warm["first"], "again": warm["again"]}
        print(json.dumps({name: found[name]}), flush=True)
    return found


def contest(name: str, sizes: tuple[int, ...], runs: int, pythons: list[str]) -> list[dict[str, Any]]:
    """Return the figures of one row at all sizes, for our audit and the peers."""
    row, lines = ROWS[name], []
    for rows in sizes:
        if rows > row.most:
            continue
        ours = child(sys.executable, name, "evenhand", rows, runs)
        if ours is None:
            raise SystemExit(f"{name} failed at {rows:,} rows")
        line: dict[str, Any] = {"row": name, "rows": rows, **ours, "peers": {}}
        for peer, (_, most, share) in row.peers.items():
            tries = (child(python, name, peer, rows, 1) for python in pythons if rows <= most)
            found = next((one for one in tries if one is not None), None)
            if found is not None:
                line["peers"][peer] = {"cpu": found["cpu"] / share, "memory": found["memory"]}
        print(json.dumps(line), flush=True)
        lines.append(line)
    return lines


def machine() -> dict[str, Any]:
    """Return a description of the machine used for the measurement."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {"processor": names[0] if names else platform.processor(), "cores": os.cpu_count()}


def versions(pythons: list[str]) -> dict[str, str]:
    """Return the versions of Python, of evenhand's dependencies and of the peers, from all environments."""
    found = {"python": platform.python_version()}
    for package in (*OURS, "fairlearn", "pingouin", "statsmodels", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    code = "import importlib.metadata as m; print(m.version({!r}))"
    for package in ("aequitas", "aif360", "holisticai"):
        for python in pythons:
            done = subprocess.run([python, "-c", code.format(package)], capture_output=True, text=True, check=False)
            if not done.returncode:
                found[package] = done.stdout.strip()
    return found


def main() -> int:
    """Measure every row and write the figures and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, one run: a look, not a measurement")
    parser.add_argument("--only", choices=list(ROWS), help="one row; nothing is written")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page of the stored figures")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--first", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        row, who, rows, runs = options.measure
        print(json.dumps(measure(row, who, int(rows), int(runs))))
        return 0
    if options.first:
        print(json.dumps(first_call(options.first)))
        return 0
    if options.page:
        stored = json.loads(FIGURES.read_text(encoding="utf-8"))
        PAGE.write_text(page(stored, stored, ROWS), encoding="utf-8")
        return 0
    pythons = [sys.executable, *filter(None, os.environ.get("PEERS", "").split(os.pathsep))]
    sizes, runs = (QUICK, 1) if options.quick else (SIZES, RUNS)
    beside = f"load average {os.getloadavg()[0]:.1f} before the run"
    names = [options.only] if options.only else list(ROWS)
    lines = [line for name in names for line in contest(name, sizes, runs, pythons)]
    figures = {"machine": machine(), "beside": beside, "versions": versions(pythons), "figures": lines}
    figures["first"] = first_calls([name for name in names if name not in ("resamples", "exact pairs")])
    last = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    text = page(figures, last if last.get("machine") == figures["machine"] else {}, ROWS)
    if options.quick or options.only:
        print(text)
        return 0
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(text, encoding="utf-8")
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
