"""What every audit costs, beside a peer in the same run: `python benchmarks/speed.py [--quick] [--only NAME]`.

Writes `benchmarks/speed.json` and `docs/benchmarks.md` (`--quick` and `--only` write nothing, `--page` only
the page). Our figures are the middle of three runs and a peer's are of one, each in a process of its own, warmed up
on 500 rows; memory is what the peak of that process grew by, with the table made before. A peer that is not installed
is left out; `PEERS=/one/python:/other/python make bench` looks for peers in other environments too, since some of them
need older libraries. A row is marked that takes a third more CPU time than its last committed figure on this machine.
First calls are of 2,000 rows, in a process of their own with an empty cache of compiled loops, and in another after it.
"""

from __future__ import annotations

import argparse
import json
import math
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

import numpy as np

HERE = Path(__file__).resolve().parent
FIGURES, PAGE = HERE / "speed.json", HERE.parent / "docs" / "benchmarks.md"
LARGE = HERE / "hundred_million.json"
WARM_UP, FIRST, RUNS, SLOWER = 500, 2_000, 3, 4 / 3
SIZES, QUICK = (10_000, 100_000, 1_000_000), (2_000, 10_000)
PLANNED = (10_000, 1_000_000, 100_000_000, 10_000_000_000)

ROLES: dict[str, Any] = {"id": "id", "outcome": "outcome", "groups": ["race", "sex"], "predictions": {"risk": "risk"}}


def people(rows: int) -> dict[str, Any]:
    """Return people that every audit can read, with scores, histories, raters and critics."""
    rng = np.random.default_rng(13)
    race = rng.choice(["Black", "Other", "White"], rows, p=[0.35, 0.25, 0.4])
    ability = rng.normal(0, 1, rows) + 0.5 * (race == "White")
    risk = 1 / (1 + np.exp(-(ability + rng.normal(0, 0.6, rows))))
    outcome = (ability + rng.normal(0, 1, rows) > 0).astype(int)
    first = np.where(rng.random(rows) < 0.85, outcome, 1 - outcome)
    columns: dict[str, Any] = {
        "id": np.arange(rows),
        "sex": rng.choice(["F", "M"], rows),
        "race": race,
        "outcome": outcome,
        "risk": risk.round(6),
        "age": rng.integers(20, 70, rows),
        "income": (30 + 8 * ability + rng.normal(0, 4, rows)).round(3),
        "rater_a": first,
        "rater_b": np.where(rng.random(rows) < 0.8, first, 1 - first),
        "label": np.where(risk > 0.5, "high", "low"),
        "critic": np.arange(rows) // 25,
        "disagree": (rng.random(rows) < np.where(race == "Black", 0.4, 0.2)).astype(int),
        "hired": (risk > 0.55).astype(int),
    }
    return columns | {year: rng.uniform(20, 60, rows).round(3) for year in ("y1", "y2", "y3")}


def frame(rows: int) -> Any:
    """Return these people as a pandas frame."""
    import pandas as pd

    return pd.DataFrame(people(rows))


# Ours -----------------------------------------------------------------------------------------------------------------


def audit(name: str, *first: Any, **settings: Any) -> Callable[[Any], None]:
    """Return an audit of a frame, from the frame to the finished result; `first` comes before the table."""

    def run(data: Any) -> None:
        import evenhand as eh

        getattr(eh, name)(*first, eh.Table(data, **ROLES), **settings)

    return run


# Peers ----------------------------------------------------------------------------------------------------------------


def fairlearn_rates(data: Any) -> None:
    """Compute three rates by group, without intervals: fairlearn's MetricFrame."""
    from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate

    metrics = {"selection": selection_rate, "tpr": true_positive_rate, "fpr": false_positive_rate}
    for group in ("race", "sex"):
        said = data["risk"] >= 0.5
        MetricFrame(metrics=metrics, y_true=data["outcome"], y_pred=said, sensitive_features=data[group])


def fairlearn_boots(data: Any) -> None:
    """Compute the same rates with two of fairlearn's bootstrap resamples."""
    from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate

    MetricFrame(
        metrics={"selection": selection_rate, "tpr": true_positive_rate, "fpr": false_positive_rate},
        y_true=data["outcome"],
        y_pred=(data["risk"] >= 0.5),
        sensitive_features=data["race"],
        n_boot=2,
        ci_quantiles=[0.025, 0.975],
    )


def aequitas_rates(data: Any) -> None:
    """Compute aequitas' table of group metrics and disparities, without intervals."""
    from aequitas.bias import Bias
    from aequitas.group import Group

    short = data.assign(score=(data["risk"] >= 0.5).astype(int), label_value=data["outcome"])
    short = short[["score", "label_value", "race", "sex"]]
    table, _ = Group().get_crosstabs(short, attr_cols=["race", "sex"])
    Bias().get_disparity_predefined_groups(
        table, original_df=short, ref_groups_dict={"race": "White", "sex": "M"}, alpha=0.05, check_significance=False
    )


def aif360_rates(data: Any) -> None:
    """Compute AIF360's classification metrics for one pair of groups, without intervals."""
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import ClassificationMetric

    short = data.assign(group=(data["race"] == "White").astype(int))[["group", "outcome"]]
    truth = BinaryLabelDataset(df=short, label_names=["outcome"], protected_attribute_names=["group"])
    predicted = truth.copy()
    predicted.labels = (data["risk"].to_numpy() >= 0.5).astype(float).reshape(-1, 1)
    sides = {"unprivileged_groups": [{"group": 0}], "privileged_groups": [{"group": 1}]}
    found = ClassificationMetric(truth, predicted, **sides)
    found.disparate_impact(), found.equal_opportunity_difference(), found.average_odds_difference()


def holisticai_rates(data: Any) -> None:
    """Compute holisticai's table of bias metrics for one pair of groups, without intervals."""
    from holisticai.bias.metrics import classification_bias_metrics

    white, said = (data["race"] == "White").to_numpy(), (data["risk"].to_numpy() >= 0.5).astype(int)
    classification_bias_metrics(~white, white, said, data["outcome"].to_numpy(), metric_type="both")


def numpy_tiles(data: Any) -> None:
    """Compare all pairs as the paper's formula says, by NumPy in tiles of 512."""
    score, effort, aggregate = (data[name].to_numpy() for name in ("risk", "income", "age"))
    for start in range(0, len(data), 512):
        part = slice(start, start + 512)
        across = 0.5 * np.subtract.outer(effort[part], effort) ** 2
        across += 0.5 * np.subtract.outer(aggregate[part], aggregate) ** 2
        np.maximum(0.0, np.abs(np.subtract.outer(score[part], score)) - np.sqrt(across)).sum()


def pingouin_and_statsmodels(data: Any) -> None:
    """Compute kappa by statsmodels and ICC by pingouin for each group."""
    import pandas as pd
    import pingouin
    from statsmodels.stats.inter_rater import cohens_kappa

    for group in ("race", "sex"):
        for _, part in data.groupby(group):
            cohens_kappa(pd.crosstab(part["rater_a"], part["rater_b"]))
            long = part.melt(id_vars="id", value_vars=["rater_a", "rater_b"], var_name="rater", value_name="answer")
            pingouin.intraclass_corr(long, targets="id", raters="rater", ratings="answer")


def perturbing_loop(data: Any) -> None:
    """Perturb the features, predict and correlate, by group, once for each level and replicate: the paper's recipe."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    rng, features = np.random.default_rng(0), data[["age", "income"]].to_numpy(dtype=float)
    model = LogisticRegression().fit(features, data["outcome"])
    before = cross_val_predict(LogisticRegression(), features, data["outcome"], method="predict_proba")[:, 1]
    for level in (0.1, 0.3):
        for _ in range(5):
            hit = rng.random(features.shape) < level
            after = model.predict_proba(features + hit * rng.normal(0, [5, 3], features.shape))[:, 1]
            for _, rows in data.groupby("race").indices.items():
                np.corrcoef(before[rows], after[rows])


def resampling_loop(data: Any) -> None:
    """Resample people by pandas and compute the gap of two decisions, 20 times: the paper's bootstrap."""
    for seed in range(20):
        drawn = data.sample(frac=1.0, replace=True, random_state=seed)
        for decision in ("hired", "rater_a"):
            drawn.groupby("sex")[[decision, "outcome"]].mean()


# The table ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One line of the page: an audit, the sizes it is tried at, and a peer that does some of the same.

    Parameters
    ----------
    what : what is computed, in words.
    ours : the audit of a frame.
    peers : others, by name: what they run, the largest size they are tried at, and by what their time is divided.
    most : the largest size that ours is tried at.
    power : the least power of the rows that its cost grows with in the end.
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
        "group rates of one model by two columns, with intervals and joint intervals (peers: without)",
        audit("parity", metrics=["selection_rate", "tpr", "fpr"]),
        {
            "fairlearn": (fairlearn_rates, 1_000_000, 1),
            "aequitas": (aequitas_rates, 1_000_000, 1),
            "aif360": (aif360_rates, 1_000_000, 1),
            "holisticai": (holisticai_rates, 1_000_000, 1),
        },
    ),
    "resamples": Row(
        "10,000 bootstrap resamples of three rates (the peer: its values and 2 resamples, counted as 3, x 3,333)",
        audit("parity", metrics=["selection_rate", "tpr", "fpr"], interval="percentile", resamples=10_000),
        {"fairlearn": (fairlearn_boots, 100_000, 3 / 10_000)},
    ),
    "effort": Row(
        "individual fairness over all pairs, parity by effort, curve over weights (the peer: one sum over all pairs)",
        audit("effort", **_EFFORT),
        {"NumPy in tiles": (numpy_tiles, 10_000, 1)},
    ),
    "exact pairs": Row(
        "the same with every pair compared, none left to a grid",
        audit("effort", method="strips", **_EFFORT),
        {"NumPy in tiles": (numpy_tiles, 10_000, 1)},
        most=100_000,
        power=2.0,
    ),
    "agreement": Row(
        "kappa, PABAK, AC1, alpha of two raters by two columns, gaps tested (the peers: kappa and ICC alone)",
        audit("agreement", raters=["rater_a", "rater_b"]),
        {"pingouin and statsmodels": (pingouin_and_statsmodels, 100_000, 1)},
    ),
    "disagreement": Row(
        "six metrics from agree or disagree, each answer a case of its own",
        audit("disagreement", decision="label", critic="critic", disagree="disagree", resamples=200),
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
    """Return the seconds, CPU seconds and megabytes of one contestant; for a process of its own."""
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
    """Return what `measure` found in a process of its own, by this Python; None where the peer is not installed."""
    command = [python, str(HERE / "speed.py"), "--measure", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        missing = "ModuleNotFoundError" in done.stderr or "ImportError" in done.stderr
        if not missing:
            print(done.stderr.strip().splitlines()[-1], flush=True)
        return None
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def first_call(row: str) -> dict[str, float]:
    """Return the CPU seconds of an audit's first call, with imports, and of its second; for a process of its own."""
    data, spent = frame(FIRST), [process_time()]
    for _ in range(2):
        ROWS[row].ours(data)
        spent.append(process_time())
    return {"first": spent[1] - spent[0], "again": spent[2] - spent[1]}


def first_calls(names: list[str]) -> dict[str, Any]:
    """Return what first calls cost where the loops were never compiled, and where an earlier process has done it."""
    found = {}
    for name in names:
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, str(HERE / "speed.py"), "--first", name]
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            runs = [subprocess.check_output(command, text=True, env=environment) for _ in range(2)]
            cold, warm = (json.loads(run.splitlines()[-1]) for run in runs)
        found[name] = {"cold": cold["first"], "warm": warm["first"], "again": warm["again"]}
        print(json.dumps({name: found[name]}), flush=True)
    return found


def contest(name: str, sizes: tuple[int, ...], runs: int, pythons: list[str]) -> list[dict[str, Any]]:
    """Return the figures of one row at all sizes, ours and the peers'."""
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


# The page -------------------------------------------------------------------------------------------------------------


def exponent(lines: list[dict[str, Any]]) -> float | None:
    """Return by which power of the rows the CPU time grows, between the two largest sizes."""
    if len(lines) < 2:
        return None
    small, large = lines[-2:]
    return math.log(large["cpu"] / small["cpu"]) / math.log(large["rows"] / small["rows"])


def behind(line: dict[str, Any], last: dict[str, Any]) -> bool:
    """Return whether a figure fell behind the last committed one by a third, on the same machine."""
    same = [old for old in last.get("figures", []) if (old["row"], old["rows"]) == (line["row"], line["rows"])]
    return bool(same) and line["cpu"] > SLOWER * same[0]["cpu"] and line["cpu"] > 0.1


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {"processor": names[0] if names else platform.processor(), "cores": os.cpu_count()}


def versions(pythons: list[str]) -> dict[str, str]:
    """Return the versions of Python, of what evenhand stands on and of the peers, wherever they are installed."""
    found = {"python": platform.python_version()}
    for package in ("numpy", "numba", "duckdb", "pandas", "fairlearn", "pingouin", "statsmodels", "scikit-learn"):
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


def _short(number: float, digits: int) -> str:
    """Return a number with so many digits that count, written in full."""
    return f"{float(f'{number:.{digits}g}'):,g}"


def page(figures: dict[str, Any], last: dict[str, Any]) -> str:
    """Return the page of the documentation."""
    ground, load = figures["machine"], figures["beside"]
    used = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    text = [
        "# What it costs",
        "",
        "<!-- Written by `make bench`; do not edit. -->",
        "",
        "Every audit from a pandas frame to the finished result, beside a peer in the same run: CPU seconds of all "
        "threads (so that other work on the machine counts less), ours the middle of three runs, a peer's of one; "
        "memory is what the peak of the process grew by. A peer does less than the audit beside it; what it does is "
        "said.",
        "",
        f"Measured on {ground['cores']} cores ({ground['processor']}), {load}; {used}.",
        "",
        "| Audit | Rows | CPU, s | Wall, s | Memory, MB | Peer | Its CPU, s | Peer / evenhand | Its memory, MB |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |",
    ]
    for line in figures["figures"]:
        mark = " (slower than before)" if behind(line, last) else ""
        ours = (
            f"| {line['row']} | {line['rows']:,} | {line['cpu']:.2f}{mark} | {line['wall']:.2f} | {line['memory']:.0f}"
        )
        peers = [
            f" | {name} | {_short(one['cpu'], 3)} | {_short(one['cpu'] / line['cpu'], 2)} | {one['memory']:.0f} |"
            for name, one in line["peers"].items()
        ]
        text += [ours + peer for peer in peers or [" | none | | | |"]]
    text += ["", "## What was run", ""]
    for name, row in ROWS.items():
        lines = [line for line in figures["figures"] if line["row"] == name]
        power = exponent(lines)
        grows = "" if power is None else f" CPU time grows with the rows to the power {power:.2f} at the end."
        text.append(f"- **{name}**: {row.what}.{grows} `python benchmarks/speed.py --only '{name}'`")
    text += ["", *first_page(figures["first"])]
    large = json.loads(LARGE.read_text(encoding="utf-8"))
    text += ["", *hundred_million(large), "", *sizing([*figures["figures"], *from_files(large)])]
    text += [
        "",
        "One claim each, with more sizes and peers: `make bench-claims`. Pairs on a graphics card: `python "
        "benchmarks/pairs_gpu.py`, and whole audits with one: `python benchmarks/effort_gpu.py`.",
        "",
    ]
    return "\n".join(text)


def first_page(first: dict[str, Any]) -> list[str]:
    """Return what the first call of a process pays."""
    text = [
        "## The first call",
        "",
        f"CPU seconds of {FIRST:,} rows in a new process, imports included. Loops over pairs of people and over "
        "mistakes in inputs are compiled when they are first called: once for a machine, since the result is kept "
        "beside the package, or in the user's cache folder where the package is read-only. Where neither "
        "can be written, in a container, name a folder in `NUMBA_CACHE_DIR` and run `evenhand demo` once while the "
        "image is built.",
        "",
        "| Audit | Never compiled before | Compiled by an earlier process | Second call |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, spent in first.items():
        text.append(f"| {name} | {spent['cold']:.1f} | {spent['warm']:.1f} | {spent['again']:.1f} |")
    return text


def from_files(large: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what parity and effort cost of a Parquet file, with reading and checking it, as figures of their rows."""
    return [
        {"row": row, "rows": line["rows"], "cpu": line["stages"]["read"]["cpu"] + line["stages"][row]["cpu"]}
        for row in ("parity", "effort")
        for line in large["figures"]
    ]


def hundred_million(large: dict[str, Any]) -> list[str]:
    """Return what `hundred_million.py` found."""
    text = [
        "## A hundred million rows in a file",
        "",
        "Parity with AUC, parity by effort and individual fairness of a Parquet file, one model and two group columns, "
        f'an id that must not repeat; `memory_limit = "{large["memory_limit"]}"` on {large["cores"]} cores, one run '
        f"({large['beside']}, so that the wall time means little). The peak is that of the whole process. "
        "`python benchmarks/hundred_million.py`",
        "",
        "| Rows | File, MB | Stage | CPU, s | Wall, s | Peak so far, MB |",
        "| ---: | ---: | --- | ---: | ---: | ---: |",
    ]
    for line in large["figures"]:
        for stage, spent in line["stages"].items():
            text.append(
                f"| {line['rows']:,} | {line['file']:,.0f} | {stage} | {spent['cpu']:,.1f} | {spent['wall']:,.1f} | "
                f"{spent['peak']:,.0f} |"
            )
    return text


def sizing(figures: list[dict[str, Any]]) -> list[str]:
    """Return what audits cost at sizes beyond those measured, by how they grow."""
    heads = " | ".join(["Audit", *(f"{rows:,} rows" for rows in PLANNED)])
    text = [
        "## How to size a machine",
        "",
        "CPU seconds, or core-hours (h) where they are more than an hour: measured up to the largest size above "
        "(parity and effort from 10,000,000 rows on of a Parquet file, everything else of a pandas frame), and "
        "computed beyond it (in italics), with the growth between the two largest sizes, but at least in "
        "proportion to the rows, and to their square for exact pairs.",
        "",
        "**Cores.** Divide the core-hours by the hours you have. Counting, adding up and filling the grid run on "
        "all cores, in the engine that holds the data: DuckDB on one machine, Spark or a database on theirs. What"
        " Spark adds for moving data between its workers was not measured; time your query on a hundredth of the "
        "rows first.",
        "",
        "**Memory** is for cells, not for rows. An id of whole numbers that must not repeat took about 25 bytes a"
        " row at 100,000,000; what is above `memory_limit` goes into temporary files. From about 2,000,000,000 "
        "rows in one combination of groups, outcome, decision and score bin on, sums do not fit into 64 bits, "
        "which is an error: split the table.",
        "",
        "**What needs rows** (disagreement, reliability, agreement, improvability, and effort by other distances "
        "or with `robustness`) reads them into memory, 8 bytes a number: 5,000,000 people with ten columns are "
        "400 MB. From Spark or a database 5,000,000 come at most (see {doc}`howto/your-data`). Beyond what fits, "
        "audit a random sample: the figures below are then what a larger machine would take.",
        "",
        f"| {heads} |",
        "| --- |" + " ---: |" * len(PLANNED),
    ]
    for name in dict.fromkeys(line["row"] for line in figures):
        lines = [line for line in figures if line["row"] == name]
        known, last = {line["rows"]: line["cpu"] for line in lines}, lines[-1]
        power = max(exponent(lines) or 1.0, ROWS[name].power)
        cells = []
        for rows in PLANNED:
            seconds = known.get(rows) or last["cpu"] * (rows / last["rows"]) ** power
            said = f"{seconds:,.1f}" if seconds < 3600 else f"{seconds / 3600:,.1f} h"
            cells.append(said if rows in known else f"*{said}*")
        text.append(f"| {name} | " + " | ".join(cells) + " |")
    return text


def main() -> int:
    """Measure every row, and write the figures and the page."""
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
        PAGE.write_text(page(stored, stored), encoding="utf-8")
        return 0
    pythons = [sys.executable, *filter(None, os.environ.get("PEERS", "").split(os.pathsep))]
    sizes, runs = (QUICK, 1) if options.quick else (SIZES, RUNS)
    beside = f"load average {os.getloadavg()[0]:.1f} before the run"
    names = [options.only] if options.only else list(ROWS)
    lines = [line for name in names for line in contest(name, sizes, runs, pythons)]
    figures = {"machine": machine(), "beside": beside, "versions": versions(pythons), "figures": lines}
    figures["first"] = first_calls([name for name in names if name not in ("resamples", "exact pairs")])
    last = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    text = page(figures, last if last.get("machine") == figures["machine"] else {})
    if options.quick or options.only:
        print(text)
        return 0
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(text, encoding="utf-8")
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
