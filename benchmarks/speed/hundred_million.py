"""A hundred million rows on one machine: parity, effort bins and individual fairness of a Parquet file.

DuckDB makes the file (11 bytes per row: 1.1 GB) in a temporary folder unless it exists. Each size is audited in its own
process, with DuckDB limited to `--memory` (the rest goes into temporary files); the peak is of the whole process. It
takes about 15 minutes on 2 cores. Figures go into `benchmarks/results/hundred_million.json`, from which
`python -m benchmarks.speed audits` writes them into the documentation.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks import RESULTS

SIZES = (10_000_000, 100_000_000)
NEEDS = "15 minutes and 1.1 GB of disk"
FIGURES = RESULTS / "hundred_million.json"
YEARS = ["income_1", "income_2", "income_3"]


def make(path: Path, rows: int) -> None:
    """Write synthetic households with changing incomes and a stored risk; hashes of the row serve as random numbers."""
    import duckdb

    chance = [f"(hash(i * 16 + {k}) >> 11) / 9007199254740992.0 as u{k}" for k in range(7)]
    connection = duckdb.connect(config={"memory_limit": "2GB", "preserve_insertion_order": "false"})
    connection.execute(  # the path is our own
        f"""
        copy (
            with drawn as (select i, {", ".join(chance)} from range({rows}) as t(i)),
            people as (
                select *,
                    case when u0 < 0.6 then 'White' when u0 < 0.75 then 'Black' when u0 < 0.93 then 'Hispanic'
                        else 'Asian' end as race,
                    case when u1 < 0.5 then 'woman' else 'man' end as sex
                from drawn
            ),
            first as (
                select *, (10 * round(1000 + 8000 * u2 * u2 - (race = 'Black')::int * 500 * u3))::integer as income_1
                from people
            ),
            second as (select *, (income_1 + 10 * round(400 * (u3 - 0.4)))::integer as income_2 from first)
            select i as id, race, sex, income_1, income_2,
                (income_2 + 10 * round(400 * (u4 - 0.4)))::integer as income_3,
                least(1, greatest(0, 0.45 - 0.5 * u2 + 0.3 * u5 + 0.05 * (race = 'Black')::int + 0.1))::float as risk,
                (u6 < 0.6 - 0.5 * u2)::tinyint as missed
            from second
        ) to '{path}' (format parquet, compression zstd)
        """  # noqa: S608
    )


def peak() -> float:
    """Return the peak memory of this process in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(path: str, memory: str) -> dict[str, Any]:
    """Return seconds, CPU seconds and the peak so far of each stage; called in a separate process."""
    import evenhand as eh
    from evenhand.core.progress import listening

    stages: dict[str, dict[str, float]] = {}

    def timed(name: str, run: Callable[[], Any]) -> Any:
        wall, cpu = perf_counter(), process_time()
        done = run()
        stages[name] = {"wall": perf_counter() - wall, "cpu": process_time() - cpu, "peak": peak()}
        print(f"{name}: {json.dumps(stages[name])}", file=sys.stderr, flush=True)
        return done

    with listening(lambda step: print(f"  {process_time():.0f} CPU s: {step}", file=sys.stderr, flush=True)):
        roles: dict[str, Any] = {"id": "id", "outcome": "missed", "groups": ["race", "sex"], "predictions": "risk"}
        table = timed("read", lambda: eh.Table(path, memory_limit=memory, **roles))
        timed("parity", lambda: eh.parity(table))
        result = timed("effort", lambda: eh.effort(table, trajectory=YEARS, unit=1_000, scale=100_000))
        timed("hash of the file", table.source.fingerprints)
    fairness = result.get("values", metric="eaif")
    size, bins = os.path.getsize(path) / 1e6, len(result.spread)
    return {"rows": table.rows, "file": size, "eaif": fairness.value, "bins": bins, "stages": stages}


def main() -> int:
    """Make missing files, audit each file, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, action="append", help="only this size; nothing is written")
    parser.add_argument("--memory", default="3GB", help="what DuckDB may fill (default 3GB)")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the files are kept")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.memory)))
        return 0
    lines = []
    for rows in options.rows or SIZES:
        path = options.folder / f"households-{rows}.parquet"
        if not path.exists():
            make(path, rows)
        command = [sys.executable, "-m", "benchmarks.speed.hundred_million", "--measure", str(path)]
        done = subprocess.run([*command, "--memory", options.memory], stdout=subprocess.PIPE, text=True, check=True)
        lines.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(lines[-1]), flush=True)
    if not options.rows:
        load = f"load average {os.getloadavg()[0]:.1f}"
        written = {"memory_limit": options.memory, "cores": os.cpu_count(), "beside": load, "figures": lines}
        FIGURES.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
