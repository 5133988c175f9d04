"""The documentation page written by `speed.py`: the cost of every audit, and estimates for larger tables."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from benchmarks import RESULTS

LARGE, MILLION = RESULTS / "hundred_million.json", RESULTS / "million.json"
FIRST, SLOWER = 2_000, 4 / 3
PLANNED = (10_000, 1_000_000, 100_000_000, 10_000_000_000)


def exponent(lines: list[dict[str, Any]]) -> float | None:
    """Return the power of the rows by which the CPU time grows between the two largest sizes; None if unknown."""
    if len(lines) < 2:
        return None
    small, large = lines[-2:]
    return math.log(large["cpu"] / small["cpu"]) / math.log(large["rows"] / small["rows"])


def behind(line: dict[str, Any], last: dict[str, Any]) -> bool:
    """Return whether a figure is a third slower than the last committed one for the same row and size."""
    same = [old for old in last.get("figures", []) if (old["row"], old["rows"]) == (line["row"], line["rows"])]
    return bool(same) and line["cpu"] > SLOWER * same[0]["cpu"] and line["cpu"] > 0.1


def _short(number: float, digits: int) -> str:
    """Return a number with this many significant digits, without an exponent."""
    return f"{float(f'{number:.{digits}g}'):,g}"


def page(figures: dict[str, Any], last: dict[str, Any], rows: Mapping[str, Any]) -> str:
    """Return the documentation page from the figures and the descriptions of the rows."""
    ground, load = figures["machine"], figures["beside"]
    used = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    text = [
        "# What it costs",
        "",
        "<!-- Written by `make bench`; do not edit. -->",
        "",
        "The table has the cost of every audit from a pandas frame to the finished result, and of a peer in the same "
        "run. Times are CPU seconds of all threads (so that other work on the machine counts less): for evenhand the "
        "median of three runs, for a peer one run. Memory is the increase in the peak of the process. A peer computes "
        "less than the audit on its line; the list below the table says what.",
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
    for name, row in rows.items():
        lines = [line for line in figures["figures"] if line["row"] == name]
        power = exponent(lines)
        grows = (
            "" if power is None else f" At the largest sizes, CPU time grows with the rows to the power {power:.2f}."
        )
        text.append(f"- **{name}**: {row.what}.{grows} `python -m benchmarks.speed audits --only '{name}'`")
    text += ["", *first_page(figures["first"])]
    large = json.loads(LARGE.read_text(encoding="utf-8"))
    million_rows = json.loads(MILLION.read_text(encoding="utf-8"))
    text += ["", *million(million_rows), "", *hundred_million(large)]
    known = [*figures["figures"], *from_memory(million_rows, figures["figures"]), *from_files(large)]
    text += ["", *sizing(known, {name: row.power for name, row in rows.items()})]
    text += [
        "",
        "`python -m benchmarks.speed --list` lists the other benchmarks, with more sizes and peers. "
        "`python -m benchmarks.speed pairs_gpu` measures pairs on a graphics card, and "
        "`python -m benchmarks.speed effort_gpu` whole audits with one.",
        "",
    ]
    return "\n".join(text)


def first_page(first: dict[str, Any]) -> list[str]:
    """Return the section on the cost of a process's first call."""
    text = [
        "## The first call",
        "",
        f"The table has CPU seconds for {FIRST:,} rows in a new process, imports included. Loops over pairs of people "
        "and over mistakes in inputs are compiled when they are first called. This happens once per machine, because "
        "the compiled code is stored beside the package, or in the user's cache folder if the package is read-only. If "
        "neither can be written, as in a container, set `NUMBA_CACHE_DIR` to a folder and run `evenhand demo` once "
        "while the image is built.",
        "",
        "| Audit | Never compiled before | Compiled by an earlier process | Second call |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, spent in first.items():
        text.append(f"| {name} | {spent['cold']:.1f} | {spent['warm']:.1f} | {spent['again']:.1f} |")
    return text


def from_files(large: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the costs of parity and effort from a Parquet file, including reading and checks."""
    return [
        {"row": row, "rows": line["rows"], "cpu": line["stages"]["read"]["cpu"] + line["stages"][row]["cpu"]}
        for row in ("parity", "effort")
        for line in large["figures"]
    ]


def from_memory(found: dict[str, Any], figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the costs of a million rows in memory for audits not measured at this size above."""
    tried = {line["row"] for line in figures if line["rows"] == 1_000_000}
    return [
        {"row": line["section"], "rows": 1_000_000, "cpu": line["cpu"]}
        for line in found["memory"]["figures"]
        if line["section"] not in tried
    ]


def million(found: dict[str, Any]) -> list[str]:
    """Return the section on a million households, from `million.py`."""
    memory, spark, command, answers = (found[part] for part in ("memory", "spark", "command", "answers"))
    text = [
        "## A million households",
        "",
        "Six audits, each of 1,000,000 rows with two group columns and one model: from a pandas frame, and from a "
        f"Parquet file on Spark with two workers, on {memory['cores']} cores, one run ({memory['beside']}, so the "
        "wall time is only rough). The peak is the peak of the whole process so far. CPU seconds of Spark include the "
        "driver and the workers; *to the driver* is the data that all reads of an audit transfer to this machine. "
        "Results are equal if `results.json` has the same content. `python -m benchmarks.speed million --spark`",
        "",
        "| Audit | CPU, s | Wall, s | Peak so far, MB | On Spark: CPU, s | Wall, s | Rows to the driver | MB to the "
        "driver | Results |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for here, there in zip(memory["figures"], spark["figures"], strict=True):
        text.append(
            f"| {here['section']} | {here['cpu']:.1f} | {here['wall']:.1f} | {here['peak']:,.0f} | {there['cpu']:.1f} "
            f"| {there['wall']:.1f} | {there['rows']:,} | {there['bytes'] / 1e6:.1f} | "
            f"{'equal' if there['equal'] else 'different'} |"
        )
    cpu, wall, on_cpu, on_wall = (
        sum(line[what] for line in part["figures"]) for part in (memory, spark) for what in ("cpu", "wall")
    )
    most = memory["figures"][-1]["peak"]
    text.append(f"| all six | {cpu:.1f} | {wall:.1f} | {most:,.0f} | {on_cpu:.1f} | {on_wall:.1f} | | | |")
    text += ["", "| What | CPU, s | Wall, s | Peak, MB | Command |", "| --- | ---: | ---: | ---: | --- |"]
    for line in command["figures"]:
        text.append(
            f"| `evenhand audit` of a {'CSV' if line['section'] == 'csv' else 'Parquet'} file: parity and effort, four "
            f"groupings, two models, with the report ({command['beside']}) | {line['cpu']:.1f} | {line['wall']:.1f} | "
            f"{line['peak']:,.0f} | `python -m benchmarks.speed million --command` |"
        )
    for line in answers["figures"]:
        text.append(
            f"| disagreement, {line['rows']:,} answers of a pandas frame ({answers['beside']}) | {line['cpu']:.1f} | "
            f"{line['wall']:.1f} | {line['peak']:,.0f} | `python -m benchmarks.speed million --answers` |"
        )
    return text


def hundred_million(large: dict[str, Any]) -> list[str]:
    """Return the section on a hundred million rows, from `hundred_million.py`."""
    text = [
        "## A hundred million rows in a file",
        "",
        "Parity with AUC, parity by effort and individual fairness of a Parquet file, one model and two group columns, "
        f'an id that must be unique; `memory_limit = "{large["memory_limit"]}"` on {large["cores"]} cores, one run '
        f"({large['beside']}, so the wall time is only rough). The peak is the peak of the whole process. "
        "`python -m benchmarks.speed hundred_million`",
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


def sizing(figures: list[dict[str, Any]], powers: Mapping[str, float]) -> list[str]:
    """Return the section on estimated costs beyond the measured sizes."""
    heads = " | ".join(["Audit", *(f"{rows:,} rows" for rows in PLANNED)])
    text = [
        "## How to size a machine",
        "",
        "The table has CPU seconds, or core-hours (h) above one hour. Figures up to the largest size above are "
        "measured (parity and effort from 10,000,000 rows on from a Parquet file, reliability at 1,000,000 rows from "
        "the households above, all others from a pandas frame). Figures beyond it (in italics) are computed with the "
        "growth between the two largest sizes, but at least in proportion to the rows, and for exact pairs to their "
        "square.",
        "",
        "**Cores.** Divide the core-hours by the hours you have. Counting, adding and filling the grid run on all "
        "cores in the data's engine: DuckDB on one machine, Spark or a database on their own. The table of a million "
        "households includes the cost of Spark with two workers on one machine; the cost of moving data over a network "
        "was not measured, so time your query on a hundredth of the rows first.",
        "",
        "**Memory** is needed for cells, not for rows. A unique id of whole numbers took about 25 bytes a row at "
        "100,000,000 rows; data above `memory_limit` goes into temporary files. From about 2,000,000,000 rows in one "
        "combination of groups, outcome, decision and score bin on, sums do not fit into 64 bits, which is an error: "
        "split the table.",
        "",
        "**Audits that need rows** (disagreement, reliability, agreement, improvability, and effort with other "
        "distances or with `robustness`) read them into memory, with 8 bytes for a number: 5,000,000 people with ten "
        "columns are 400 MB. From Spark or a database, at most 5,000,000 rows are read (see {doc}`howto/your-data`). "
        "For more rows than fit, audit a random sample: the figures below are the cost on a larger machine.",
        "",
        f"| {heads} |",
        "| --- |" + " ---: |" * len(PLANNED),
    ]
    for name in dict.fromkeys(line["row"] for line in figures):
        lines = [line for line in figures if line["row"] == name]
        known, last = {line["rows"]: line["cpu"] for line in lines}, lines[-1]
        power = max(exponent(lines) or 1.0, powers[name])
        cells = []
        for rows in PLANNED:
            seconds = known.get(rows) or last["cpu"] * (rows / last["rows"]) ** power
            said = f"{seconds:,.1f}" if seconds < 3600 else f"{seconds / 3600:,.1f} h"
            cells.append(said if rows in known else f"*{said}*")
        text.append(f"| {name} | " + " | ".join(cells) + " |")
    return text
