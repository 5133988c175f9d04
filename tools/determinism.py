"""Audit the examples under many circumstances, and report whether `results.json` and the report stay identical.

    python tools/determinism.py [--examples agreement,feedback] [--only "no AVX2,2 threads"] [--python PATH ...]

Circumstances: 1, 2 and 8 threads; other hash seeds; emulated processors without AVX-512 and without AVX2, for NumPy,
OpenBLAS and numba; and any other Python with evenhand installed. The report is compared without its date and
versions. The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = ("households", "feedback", "reliability", "agreement", "improvability")
ROOT = Path(__file__).resolve().parent.parent


def _threads(number: int) -> dict[str, str]:
    names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return dict.fromkeys(names, str(number))


def _processor(numba: str, openblas: str, without: str) -> dict[str, str]:
    """Return environment variables that make numba, OpenBLAS and NumPy avoid some processor instructions."""
    for_numba = {"NUMBA_CPU_NAME": numba, "NUMBA_CPU_FEATURES": ""}
    return {**for_numba, "OPENBLAS_CORETYPE": openblas, "NPY_DISABLE_CPU_FEATURES": without}


_AVX512 = "X86_V4 AVX512_ICL AVX512_SPR"  # as NumPy 2.4 calls them
CIRCUMSTANCES: dict[str, dict[str, str]] = {
    "as it is": {},
    "again": {},
    "1 thread": _threads(1),
    "2 threads": _threads(2),
    "8 threads": _threads(8),
    "hash seed 1": {"PYTHONHASHSEED": "1"},
    "hash seed 2": {"PYTHONHASHSEED": "2"},
    "no AVX-512": _processor("haswell", "Haswell", _AVX512),
    "no AVX2": _processor("sandybridge", "Sandybridge", f"X86_V3 {_AVX512}"),
}


def audited(python: str, example: str, environment: dict[str, str], numba: Path) -> tuple[str, str]:
    """Return the hashes of an example's results and report."""
    known = {name: value for name, value in os.environ.items() if name != "NPY_DISABLE_CPU_FEATURES"}
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "evenhand", "audit", f"examples/{example}.toml", "--quiet", "--out", folder]
        given = {**known, "NUMBA_CACHE_DIR": str(numba), **environment}
        done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True)
        if done.returncode:
            return f"failed: {done.stderr.strip()[-200:]}", ""
        results = (Path(folder) / "results.json").read_bytes()
        run = json.loads((Path(folder) / "run.json").read_text(encoding="utf-8"))
        report = (Path(folder) / "report.html").read_text(encoding="utf-8")
    report = re.sub(r"evenhand \S+, Python [^<]*", "", report)  # the versions installed
    for told in sorted(_texts(run), key=len, reverse=True):
        report = report.replace(told, "")
    return _hash(results), _hash(re.sub(r"\d{4}-\d\d-\d\d|\d+ \w+ \d{4}|\d\d:\d\d", "", report).encode())


def _texts(value: object) -> set[str]:
    """Return the texts in run.json, which are specific to this run."""
    if isinstance(value, dict):
        return {text for part in value.values() for text in _texts(part)}
    if isinstance(value, list):
        return {text for part in value for text in _texts(part)}
    return {value} if isinstance(value, str) and len(value) > 3 else set()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def main() -> int:
    """Audit, compare, and print one line per example and circumstance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", default=",".join(EXAMPLES), help="which examples, by a comma apart")
    parser.add_argument("--python", action="append", default=[], help="another Python that has evenhand installed")
    parser.add_argument("--only", help="which circumstances besides 'as it is', by a comma apart; all where not given")
    given = parser.parse_args()
    wanted = set(CIRCUMSTANCES) if given.only is None else {"as it is", *given.only.split(",")}
    tried = [(name, sys.executable, environment) for name, environment in CIRCUMSTANCES.items() if name in wanted]
    tried += [(other, other, {}) for other in given.python]
    different = 0
    with tempfile.TemporaryDirectory() as caches:
        for example in given.examples.split(","):
            expected: tuple[str, str] | None = None
            for number, (name, python, environment) in enumerate(tried):
                # Code compiled for one processor must not be reused for another.
                cache = Path(caches) / (
                    str(number) if "NUMBA_CPU_NAME" in environment or python in given.python else "0"
                )
                found = audited(python, example, environment, cache)
                expected = expected or found
                parts = [
                    part
                    for part, ours, first in zip(("results", "report"), found, expected, strict=True)
                    if ours != first
                ]
                different += bool(parts)
                told = f"DIFFERENT: {', '.join(parts)}" if parts else "same"
                print(f"{example:15}{name:20}{' '.join(found)}  {told}", flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
