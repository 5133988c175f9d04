"""All six audits of a million synthetic households, by section.

Households have two raters, a decision, and critics with 25 answers each; a model is refitted for reliability and for
improvability. Each line has the seconds and CPU seconds of a section and the peak memory so far, from one run.
`--spark` then audits the same rows from a Parquet file on two workers, prints whether `results.json` is the same, and
counts the rows and bytes that reach the driver; its CPU seconds are those of the driver and the workers together.
`--command` times `evenhand audit` of a Parquet and of a CSV file: parity and effort, four groupings, two models.
`--answers` times the disagreement audit of 10,000,000 answers. Each part goes into `benchmarks/results/million.json`,
from which `python -m benchmarks.speed audits` writes it into the documentation; with `--rows` or `--only` nothing is
written.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import evenhand as eh
from benchmarks import RESULTS
from evenhand.table.engines import count_transfers

NEEDS = "3 GB of memory, and Spark for --spark"
FIGURES = RESULTS / "million.json"
ROWS, ANSWERS = 1_000_000, 10_000_000
MASTER = "local-cluster[2,1,1024]"
YEARS = ["income_2019", "income_2020", "income_2021", "income_2022"]
ROLES: dict[str, Any] = {
    "id": "household",
    "outcome": "missed_payment",
    "groups": ["race", "sex"],
    "predictions": {"boosting": "risk_xgboost"},
    "favourable": "not_selected",
}
SECTIONS: dict[str, dict[str, Any]] = {
    "parity": {},
    "effort": {"trajectory": YEARS, "unit": 10_000, "scale": 200_000},
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
COMMAND = f"""
[data]
source = "SOURCE"
id = "household"
outcome = "missed_payment"
groups = ["race", "sex", "age_group", "employment"]
predictions = {{ xgboost = "risk_xgboost", logistic = "risk_logistic" }}
favourable = "not_selected"
[parity]
[effort]
trajectory = {json.dumps(YEARS)}
unit = 10_000
scale = 200_000
"""


def households(rows: int) -> Any:
    """Return a pandas frame of households with two raters, critics and a decision."""
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


def answers(rows: int) -> Any:
    """Return critics' answers, 25 per critic, with five answers per case."""
    import pandas as pd

    rng, case = np.random.default_rng(19), np.arange(rows) % (rows // 5)
    black = case * 104_729 % 10 < 4
    return pd.DataFrame(
        {
            "case": case,
            "race": np.where(black, "Black", "White"),
            "label": np.where(case * 7_919 % 10 < 4, "high", "low"),
            "critic": np.arange(rows) // 25,
            "disagree": (rng.random(rows) < 0.2 + 0.1 * black).astype(int),
        }
    )


# Measuring ------------------------------------------------------------------------------------------------------------


def measure(source: Any, name: str, sections: list[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Print the cost of each section; return the costs, and the results of all sections."""
    print(f"\n{name:16}{'seconds':>9}{'CPU':>8}{'peak, MB':>10}", flush=True)
    found: dict[str, Any] = {}
    figures: list[dict[str, Any]] = []
    for section in sections:
        wall, cpu = perf_counter(), tree_seconds()
        asked: dict[str, Any] = {section: SECTIONS[section]}
        with count_transfers() as received:
            audit = eh.audit(eh.Table(source, **ROLES), **asked)
        line = {"section": section, "wall": perf_counter() - wall, "cpu": tree_seconds() - cpu, "peak": peak()}
        figures.append(line | {"rows": sum(received), "bytes": received.size})
        found[section] = json.loads(audit.to_json())
        print(f"{section:16}{line['wall']:9.1f}{line['cpu']:8.1f}{line['peak']:10.0f}", flush=True)
    total = {what: sum(line[what] for line in figures) for what in ("wall", "cpu")}
    print(f"{'all':16}{total['wall']:9.1f}{total['cpu']:8.1f}{peak():10.0f}", flush=True)
    return figures, found


def peak() -> float:
    """Return the peak memory of this process in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def tree_seconds() -> float:
    """Return the CPU seconds of this process and of its running descendants, such as Spark's workers."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(path.parent.name)], ticks[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    return process_time() + sum(ticks[pid] for pid in _below(os.getpid(), parents)) / os.sysconf("SC_CLK_TCK")


def _below(root: int, parents: dict[int, int]) -> Iterator[int]:
    for pid, parent in parents.items():
        if parent == root:
            yield pid
            yield from _below(pid, parents)


def on_spark(data: Any, here: dict[str, Any], sections: list[str]) -> list[dict[str, Any]]:
    """Audit the same rows on two Spark workers; return the costs, and whether the results equal `here`."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "households.parquet"
        data.to_parquet(path, index=False)
        session = SparkSession.builder.master(MASTER).config("spark.ui.enabled", "false")
        spark = session.config("spark.sql.ansi.enabled", "true").getOrCreate()
        figures, there = measure(spark.read.parquet(str(path)), "Spark, 2 workers", sections)
        spark.stop()
    for line in figures:
        section = line["section"]
        line["equal"] = json.dumps(here[section], sort_keys=True) == json.dumps(there[section], sort_keys=True)
        said = "equal results" if line["equal"] else "DIFFERENT RESULTS"
        print(f"{section:16}{said}, {line['rows']:,} rows and {line['bytes']:,} bytes to the driver")
    return figures


def commands(rows: int) -> list[dict[str, Any]]:
    """Run `evenhand audit` on a Parquet and on a CSV file, each in its own process; return the costs."""
    figures = []
    with tempfile.TemporaryDirectory() as name:
        folder, data = Path(name), eh.datasets.make_households(rows, backend="pandas")
        data.to_parquet(folder / "households.parquet", index=False)
        data.to_csv(folder / "households.csv", index=False)
        del data
        for kind in ("parquet", "csv"):
            toml = folder / f"{kind}.toml"
            toml.write_text(COMMAND.replace("SOURCE", f"households.{kind}"), encoding="utf-8")
            command = [sys.executable, "-m", "evenhand", "audit", str(toml), "--out", str(folder / kind), "--quiet"]
            wall, child = perf_counter(), subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode:
                raise SystemExit(f"evenhand audit ended with {child.returncode}")
            cpu = used.ru_utime + used.ru_stime
            line = {"section": kind, "wall": perf_counter() - wall, "cpu": cpu, "peak": used.ru_maxrss / 1024}
            print(json.dumps(line), flush=True)
            figures.append(line)
    return figures


def many_answers(rows: int) -> dict[str, float]:
    """Return the cost of the disagreement audit of `rows` answers."""
    data = answers(rows)
    wall, cpu = perf_counter(), process_time()
    eh.disagreement(eh.Table(data, groups=["race"]), case="case", **SECTIONS["disagreement"])
    line = {"rows": rows, "wall": perf_counter() - wall, "cpu": process_time() - cpu, "peak": peak()}
    print(json.dumps(line), flush=True)
    return line


def main() -> None:
    """Measure one part and save its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="other than a million (for --answers ten million): written nowhere")
    parser.add_argument("--only", choices=list(SECTIONS), help="one section; written nowhere")
    parser.add_argument("--spark", action="store_true", help="the same on two workers of Spark")
    parser.add_argument("--command", action="store_true", help="`evenhand audit` of files")
    parser.add_argument("--answers", action="store_true", help="disagreement of ten million answers")
    given = parser.parse_args()
    sections, rows = [given.only] if given.only else list(SECTIONS), given.rows or ROWS
    load = os.getloadavg()[0]
    parts: dict[str, Any] = {}
    if given.command:
        parts["command"] = commands(rows)
    elif given.answers:
        parts["answers"] = [many_answers(given.rows or ANSWERS)]
    else:
        data = households(rows)
        parts["memory"], here = measure(data, f"{rows:,} rows", sections)
        if given.spark:
            parts["spark"] = on_spark(data, here, sections)
    if given.rows is None and given.only is None:
        known = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
        for part, figures in parts.items():
            known[part] = {"cores": os.cpu_count(), "beside": f"load average {load:.1f}", "figures": figures}
        FIGURES.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
