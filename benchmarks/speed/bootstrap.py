"""Speed and memory of the parity audit and its bootstrap.

Table 1 compares a resample with one of `fairlearn.metrics.MetricFrame(n_boot=...)`: selection rate, true and
false positive rate by a text column of 4 groups. Both compute percentile bootstrap intervals (`interval="percentile"`;
by default evenhand computes these metrics' intervals in closed form and resamples nothing).
Fairlearn also computes the values themselves, so its time is divided by n_boot + 1. `evenhand` is everything from
the data frame to the result with 10,000 resamples, divided by 10,000; `draws alone` are the 10,000 resamples of the
cells. Both are in CPU seconds (user and system, all threads), which depend little on other work on the machine;
evenhand's are the best of several runs. Every measurement has its own process; `memory` is its peak resident memory
(VmHWM of /proc, reset after loading the data and a small warm-up run) minus the memory in use at the reset; evenhand's
is that of the reduction (`eh.Table`, here pandas' group-by) and that of the rest, which must not grow with the rows.

Table 2 compares the audit end to end (`eh.Table` and `eh.parity`) with a bare group-by of the same columns in DuckDB:
the default audit of 3 metrics and of all, and that of 3 metrics with 10,000 resamples. Table 3 is the audit after the
reduction. Table 4 has many groups. Tables 2 and 3 are wall time, the best of several alternating runs, so that both run
under the same conditions.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

RESAMPLES = 10_000
METRICS = ("selection_rate", "tpr", "fpr")
GROUPS = ("Asian", "Black", "Hispanic", "White")
ROLES: dict[str, Any] = {"outcome": "outcome", "groups": ["group"], "predictions": {"model": "decision"}}
SIZES = ((10_000, 200), (100_000, 10), (1_000_000, 2))  # rows, and fairlearn's resamples of them
QUICK = ((10_000, 20), (100_000, 1))
BIG = 1_000_000
HUGE = 10_000_000  # rows of a Parquet file
NEEDED = 6.0  # GB of free memory for making it

FASTER = 1_000_000  # goal: times faster than fairlearn, per resample of 1,000,000 rows
FLAT = 32.0  # goal: memory added after the reduction at any size, MB
WITHIN = 2.0  # goal: times the bare group-by
PARQUET_WITHIN = 1.5  # and of a Parquet file with resamples
SOON = 0.5  # goal: seconds of 10,000 resamples after the reduction


def make_frame(rows: int, groups: int = len(GROUPS), *, scores: bool = False) -> Any:
    """Return a pandas frame of people with a group (text), an outcome and a decision, or a score."""
    import pandas as pd

    rng = np.random.default_rng(rows + groups)
    names = GROUPS if groups == len(GROUPS) else tuple(f"group {number:04d}" for number in range(groups))
    code = rng.integers(groups, size=rows)
    tilt = (code % 4) / 4
    outcome = rng.random(rows) < 0.35 - 0.1 * tilt
    score = np.clip(0.3 + 0.25 * outcome + 0.1 * tilt + 0.2 * rng.standard_normal(rows), 0.0, 1.0)
    columns = {"group": np.array(names, dtype=object)[code], "outcome": outcome.astype(np.int64)}
    return pd.DataFrame(columns | ({"score": score} if scores else {"decision": (score > 0.5).astype(np.int64)}))


# One measurement, in a process of its own ---------------------------------------------------------------------


def memory(field: str) -> float:
    """Return a field of this process's memory, in MB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


class Meter:
    """Measure the CPU seconds and the memory added inside a `with` block."""

    def __enter__(self) -> Meter:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # sets the peak back to what is held now
        self.before, self.start, self.wall_start = memory("VmRSS"), process_time(), perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu, self.wall = process_time() - self.start, perf_counter() - self.wall_start
        self.added = memory("VmHWM") - self.before


def measure_fairlearn(rows: int, boots: int) -> dict[str, Any]:
    """Return seconds per resample, memory added and intervals of fairlearn's MetricFrame."""
    import warnings

    warnings.simplefilter("ignore")
    from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate

    def run(frame: Any, resamples: int) -> Any:
        functions = (selection_rate, true_positive_rate, false_positive_rate)
        return MetricFrame(
            metrics=dict(zip(METRICS, functions, strict=True)),
            y_true=frame["outcome"],
            y_pred=frame["decision"],
            sensitive_features=frame["group"],
            n_boot=resamples,
            ci_quantiles=[0.025, 0.975],
            random_state=0,
        )

    frame = make_frame(rows)
    run(make_frame(500), 2)
    with Meter() as meter:
        low, high = run(frame, boots).by_group_ci
    ends = {f"{g} {m}": [float(low.loc[g, m]), float(high.loc[g, m])] for g in GROUPS for m in METRICS}
    return {"seconds": meter.cpu / (boots + 1), "memory": meter.added, "ends": ends}


def measure_evenhand(rows: int, repeats: int) -> dict[str, Any]:
    """Return seconds per resample (in total, and of the draws alone), memory added and percentile intervals."""
    import evenhand as eh
    from evenhand.audits.parity.gather import GroupCells
    from evenhand.audits.parity.metrics import METRICS as TABLE
    from evenhand.audits.parity.resampled import resample_groups

    def run(table: eh.Table, resamples: int) -> eh.ParityResult:
        return eh.parity(table, metrics=METRICS, interval="percentile", resamples=resamples)

    frame = make_frame(rows)
    run(eh.Table(make_frame(500), **ROLES), 100)
    with Meter() as reduction:
        table = eh.Table(frame, **ROLES)
    with Meter() as bootstrap:
        result = run(table, RESAMPLES)
    seconds = [reduction.cpu + bootstrap.cpu]
    cells = GroupCells.build(table.counts("model"), "model", ["group"], ())
    alone = []
    for _ in range(repeats):
        with Meter() as again:
            run(eh.Table(frame, **ROLES), RESAMPLES)
        with Meter() as draws:
            drawn = [(TABLE[m], None) for m in METRICS]
            list(resample_groups(cells, drawn, reference=0, resamples=RESAMPLES))
        seconds.append(again.cpu)
        alone.append(draws.cpu)
    ends = {f"{r.group} {r.metric}": [r.low, r.high, r.value, r.n] for r in result.values}
    return {
        "seconds": min(seconds) / RESAMPLES,
        "alone": min(alone) / RESAMPLES,
        "reduction": reduction.added,
        "memory": bootstrap.added,
        "ends": ends,
    }


def measure_many(rows: int, groups: int, kind: str) -> dict[str, Any]:
    """Return seconds and memory of the default audit with many groups, for decisions or for scores."""
    import evenhand as eh

    def run(data: Any, resamples: int) -> Any:
        return eh.parity(eh.Table(data, **(ROLES | {"predictions": {"model": kind}})), resamples=resamples)

    frame = make_frame(rows, groups, scores=kind == "score")
    run(make_frame(2_000, 4, scores=kind == "score"), 100)
    with Meter() as meter:
        result = run(frame, RESAMPLES)
    return {"seconds": meter.cpu, "memory": meter.added, "records": len(result.values) + len(result.gaps)}


MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "fairlearn": measure_fairlearn,
    "evenhand": measure_evenhand,
    "many": measure_many,
}


def measured(what: str, *arguments: int | str) -> dict[str, Any]:
    """Run one measurement in a new process."""
    command = [sys.executable, __file__, "--measure", json.dumps([what, *arguments])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# The tables ----------------------------------------------------------------------------------------------------


def against_fairlearn(sizes: Sequence[tuple[int, int]], repeats: int) -> dict[int, dict[str, float]]:
    """Print table 1; return its figures by number of rows."""
    print(f"\n1. One resample: {', '.join(METRICS)} by {len(GROUPS)} groups, percentile intervals (CPU seconds)")
    print("                                                                          memory, MB")
    print("     rows n_boot  fairlearn   evenhand draws alone     ratio ratio alone  fairlearn reduction bootstrap")
    figures = {}
    for rows, boots in sizes:
        theirs, ours = measured("fairlearn", rows, boots), measured("evenhand", rows, repeats)
        ratio, alone = theirs["seconds"] / ours["seconds"], theirs["seconds"] / ours["alone"]
        print(
            f"{rows:>9,} {boots:>6} {theirs['seconds']:>8.3f} s {1e6 * ours['seconds']:>7.2f} us"
            f" {1e6 * ours['alone']:>8.2f} us {ratio:>9,.0f} {alone:>11,.0f}  {theirs['memory']:>9.0f}"
            f" {ours['reduction']:>9.0f} {ours['memory']:>9.0f}",
            flush=True,
        )
        figures[rows] = {"ratio": ratio, "memory": ours["memory"]}
        if rows == sizes[0][0]:
            print_agreement(theirs["ends"], ours["ends"], boots)
    return figures


def print_agreement(theirs: dict[str, list[float]], ours: dict[str, list[float]], boots: int) -> None:
    """Print the differences between the interval ends, and the differences expected by chance."""
    apart, chance = [], []
    for name, (low, high) in theirs.items():
        own_low, own_high, value, n = ours[name]
        apart += [abs(low - own_low), abs(high - own_high)]
        # The standard error of a 2.5 % quantile from `boots` normal draws: sqrt(p (1 - p) / boots) / density.
        chance += [np.sqrt(value * (1 - value) / n) * np.sqrt(0.025 * 0.975 / boots) / 0.05845] * 2
    worst = int(np.argmax(apart))
    typical = np.sqrt(np.mean((np.array(apart) / chance) ** 2))
    print(
        f"          agreement: largest of {len(apart)} differences between interval ends {apart[worst]:.4f}, where "
        f"{boots} resamples have a standard error of {chance[worst]:.4f};"
    )
    print(f"          root mean square of difference / standard error {typical:.2f} (about 1 is chance alone)")


def best_in_turn(runs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the best wall time of each function, run alternately after one warm-up run."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(repeats + 1):
        for name, run in runs.items():
            start = perf_counter()
            run()
            if turn:
                times[name].append(perf_counter() - start)
    return {name: min(seconds) for name, seconds in times.items()}


def bare_group_by(data: Any) -> None:
    """Count the groups of a frame or a file in DuckDB, without any audit."""
    import duckdb

    connection = duckdb.connect()
    if isinstance(data, str):
        source = f"'{data}'"
    else:
        connection.register("frame", data)
        source = "frame"
    connection.sql(f'select "group", outcome, decision, count(*) from {source} group by all').fetchall()  # noqa: S608


def audit_of(data: Any, metrics: Sequence[str] | None, **options: Any) -> None:
    """Audit a frame or a file, including the reduction."""
    import evenhand as eh

    eh.parity(eh.Table(data, **ROLES), metrics=metrics, **options)


def end_to_end_row(name: str, rows: int, data: Any, repeats: int) -> tuple[float, float]:
    """Print a line of table 2; return the ratios of the default and of the resampled audit to a bare group-by."""
    import evenhand as eh

    best = best_in_turn(
        {
            "bare": partial(bare_group_by, data),
            "table": partial(eh.Table, data, **ROLES),
            "three": partial(audit_of, data, METRICS),
            "all": partial(audit_of, data, None),
            "resampled": partial(audit_of, data, METRICS, interval="percentile", resamples=RESAMPLES),
        },
        repeats,
    )
    print(
        f"{name:>8} {rows:>11,} {best['bare']:>13.3f} {best['table']:>7.3f}",
        *(f"{best[what]:>11.3f} {best[what] / best['bare']:>6.2f}" for what in ("three", "all", "resampled")),
        flush=True,
    )
    return best["three"] / best["bare"], best["resampled"] / best["bare"]


def end_to_end(rows: int, huge: int, repeats: int) -> dict[str, tuple[float, float]]:
    """Print table 2; return the ratios to a bare group-by for each source."""
    frame = make_frame(rows)
    print(
        f"\n2. End to end, 4 groups (seconds): the default audit, and percentile intervals of {RESAMPLES:,} resamples"
    )
    print("  source        rows bare group-by   Table   3 metrics  ratio all metrics  ratio 3 resampled  ratio")
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        frame.to_parquet(f"{folder}/people.parquet")
        frame.to_csv(f"{folder}/people.csv", index=False)
        sources = {"pandas": frame, "parquet": f"{folder}/people.parquet", "csv": f"{folder}/people.csv"}
        for name, data in sources.items():
            ratios[f"{name}, {rows:,} rows"] = end_to_end_row(name, rows, data, repeats)
        del frame, sources, data
        if huge and free_memory() < NEEDED:
            print(f"          ({huge:,} rows left out: less than {NEEDED:g} GB of memory is free)")
        elif huge:
            make_frame(huge).to_parquet(f"{folder}/huge.parquet")
            ratios[f"parquet, {huge:,} rows"] = end_to_end_row("parquet", huge, f"{folder}/huge.parquet", 3)
    return ratios


def free_memory() -> float:
    """Return the available memory of this machine in GB."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024**2 for line in lines if line.startswith("MemAvailable:"))


def after_reduction(rows: int, repeats: int) -> dict[str, float]:
    """Print table 3; return the seconds after the reduction with every metric resampled."""
    import evenhand as eh

    table = eh.Table(make_frame(rows), **ROLES)
    scored = eh.Table(make_frame(rows, scores=True), **(ROLES | {"predictions": {"model": "score"}}))
    # AUC is not resampled, and reads the rows again.
    names = sorted({record.metric for record in eh.parity(scored, resamples=100).values} - {"auc"})
    every: dict[str, tuple[eh.Table, Sequence[str] | None]] = {
        "3 metrics": (table, METRICS),
        "all metrics of decisions": (table, None),
        "all metrics of scores but AUC": (scored, names),
    }
    best = {
        how: best_in_turn(
            {name: partial(eh.parity, data, metrics=metrics, interval=how) for name, (data, metrics) in every.items()},
            repeats,
        )
        for how in ("auto", "percentile")
    }
    print(f"\n3. After the reduction, {rows:,} rows, {len(GROUPS)} groups (seconds)")
    print(f"   {'':<30} {'default':>8} {RESAMPLES:>9,} resamples")
    for name in every:
        print(f"   {name:<30} {best['auto'][name]:>8.3f} {best['percentile'][name]:>9.3f}")
    return best["percentile"]


def many_groups(rows: int) -> None:
    """Print table 4."""
    print(f"\n4. The default audit with many groups, {rows:,} rows (CPU seconds)")
    print(f"{'groups':>7} {'column':>9} {'seconds':>8} {'memory, MB':>10} {'records':>8}")
    for groups, kind in ((200, "decision"), (200, "score"), (1_000, "decision"), (1_000, "score")):
        found = measured("many", rows, groups, kind)
        print(f"{groups:>7,} {kind:>9} {found['seconds']:>8.1f} {found['memory']:>10.0f} {found['records']:>8,}")


def goals(
    figures: dict[int, dict[str, float]], ratios: dict[str, tuple[float, float]], after: dict[str, float]
) -> Iterator[tuple[str, str, bool | None]]:
    """Yield each goal, its figure, and whether it is met (None: not measured)."""
    big = figures.get(BIG)
    goal = f"percentile intervals: at least {FASTER:,} times faster a resample than fairlearn at {BIG:,} rows"
    yield goal, f"{big['ratio']:,.0f}" if big else "needs the full run", big["ratio"] >= FASTER if big else None
    most = max(figure["memory"] for figure in figures.values())
    yield f"memory of the bootstrap less than {FLAT:.0f} MB at any size", f"{most:.0f} MB at most", most < FLAT
    for name, (default, resampled) in ratios.items():
        limits = {"default": WITHIN, f"{RESAMPLES:,} resamples": PARQUET_WITHIN if "parquet" in name else WITHIN}
        for (what, limit), found in zip(limits.items(), (default, resampled), strict=True):
            yield f"end to end within {limit:g} times a bare group-by, {name}, {what}", f"{found:.2f}", found <= limit
    slowest = max(after.values())
    goal = f"{RESAMPLES:,} resamples after the reduction in less than {SOON:g} s"
    yield goal, f"{slowest:.3f} s at most", slowest < SOON


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables and the goals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a look in half a minute: no fairlearn at 1,000,000 rows")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.measure:
        what, *arguments = json.loads(options.measure)
        print(json.dumps(MEASUREMENTS[what](*arguments)))
        return 0
    start, busy = perf_counter(), os.getloadavg()[0]
    parts = ("evenhand", "fairlearn", "duckdb", "narwhals", "numpy", "pandas", "scipy")
    print(f"python -m benchmarks.speed bootstrap{' --quick' if options.quick else ''}")
    print(
        f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()};",
        ", ".join(f"{part} {version(part)}" for part in parts),
    )
    figures = against_fairlearn(QUICK if options.quick else SIZES, repeats=3 if options.quick else 7)
    ratios = end_to_end(BIG, 0 if options.quick else HUGE, repeats=2 if options.quick else 9)
    after = after_reduction(BIG, repeats=2 if options.quick else 5)
    if not options.quick:
        many_groups(BIG)
    loads = f"{busy:.1f} at the start, {os.getloadavg()[0]:.1f} at the end"
    print(f"\n{perf_counter() - start:.0f} s in all; the machine's load average was {loads}. Goals:")
    for goal, figure, met in goals(figures, ratios, after):
        print(f"  {'not measured' if met is None else 'met' if met else 'NOT met':<12} {goal}: {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
