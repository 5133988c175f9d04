"""Fuzz for long: `python -m tests.fuzz --cases 100000`; it goes on where it stopped, and says what failed.

Every line of the record is a block: its target, what became of its cases, and the smallest case that failed, if any.
`python -m tests.fuzz --block 1234` runs one block again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from .runner import CASES, run_block

OUTCOMES = ("finished", "refused", "failed")


def done(record: Path) -> dict[int, dict[str, Any]]:
    """Return the blocks that were run, by number."""
    if not record.exists():
        return {}
    lines = (line for line in record.read_text(encoding="utf-8").splitlines() if line.endswith("}"))
    return {block["block"]: block for block in map(json.loads, lines)}


def told(blocks: Iterable[dict[str, Any]]) -> str:
    """Return what became of all cases, in a line."""
    total = Counter[str]()
    for block in blocks:
        total.update({name: block.get(name, 0) for name in (*OUTCOMES, "seconds")})
        total["failures"] += "failure" in block
    cases = sum(total[name] for name in OUTCOMES)
    share = total["finished"] / max(cases, 1)
    return (
        f"{cases:,} cases, {share:.0%} of them finished, {total['failures']} failures, "
        f"{total['seconds'] / 3600:.1f} hours of one core."
    )


def main() -> int:
    """Run the blocks that are still to be run; leave with 1 where a case failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--record", type=Path, default=Path("build/fuzz.jsonl"))
    parser.add_argument("--block", type=int, help="run this block only, and print it")
    given = parser.parse_args()
    if given.block is not None:
        found = run_block(given.block)
        sys.stdout.write(f"{json.dumps(found, indent=1)}\n{found.get('failure', '')}\n")
        return int("failure" in found)
    blocks = done(given.record)
    open_blocks = [number for number in range(-(-given.cases // CASES)) if number not in blocks]
    given.record.parent.mkdir(parents=True, exist_ok=True)
    with given.record.open("a", encoding="utf-8") as file, ProcessPoolExecutor(given.jobs) as pool:
        for running in as_completed([pool.submit(run_block, number) for number in open_blocks]):
            found = running.result()
            blocks[found["block"]] = found
            file.write(json.dumps(found) + "\n")
            file.flush()
            if "failure" in found:
                sys.stdout.write(f"block {found['block']}, {found['target']}: {found['failure']}\n")
    sys.stdout.write(told(blocks.values()) + "\n")
    return int(any("failure" in block for block in blocks.values()))


if __name__ == "__main__":
    sys.exit(main())
