"""Change the code of `stats/` and `core/` in one place at a time, and record whether a test fails.

    python tools/mutants.py [--rooms stats,core] [--most 600] [--again] [--near] [--seconds 5] [--show]

The mutants are drawn with a seed, from every file in proportion to its number of mutants; a larger sample extends a
smaller one, and a mutant whose line was rewritten is dropped from the record. A mutant is tested only with tests that
run its line, cheap ones first and without numba's compilation, until one fails (see `mutant_tests`). A mutant that
no test notices survives: either a change of meaning is untested, or the meaning did not change. The record has a
line per mutant, with the commit at which it was drawn and the test that noticed it; if a survivor turns out to
change nothing, add "equivalent" with the reason to its line. `--again` runs more tests on the others, after some were
added. We do not use cosmic-ray because it has no stratified sample that can be
extended, and starts a new Python process for each mutant, which takes much longer than the tests.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any, cast

from mutant_tests import WORDS, Runner

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "mutants"
TREE = COPY
KNOWN = ROOT / "build" / "mutants-tests.json"
RECORD = ROOT / "benchmarks" / "results" / "mutants.jsonl"
TESTS = ("tests/stats", "tests/core", "src/evenhand/stats", "src/evenhand/core")
MORE_TESTS = ("tests/audits", "src/evenhand/audits")
"""Additional tests for survivors; tests elsewhere that import a module of the folders are used too."""
LEFT_OUT = ("stats/pairs/cuda.py", "stats/workers.py")
"""Code that only runs on a graphics card or starts processes."""
BUDGET = 5.0
"""Seconds of tests per mutant; tests that run its line are used, cheap ones first, until one fails."""

LIBRARIES = (
    "numba",
    "pandas",
    "polars",
    "scipy.stats",
    "scipy.optimize",
    "duckdb",
    "pyarrow",
    "statsmodels.api",
    "sklearn.linear_model",
    "sklearn.pipeline",
    "sklearn.metrics",
    "sklearn.ensemble",
    "sklearn.compose",
)
"""Libraries imported before timing, so that their import time is not charged to tests."""

SWAPS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}
NAMES |= {"argmin": "argmax", "argmax": "argmin", "ceil": "floor", "floor": "ceil", "mean": "sum", "sum": "mean"}


@dataclass(frozen=True)
class Mutant:
    """One change: the number of a syntax node in its file, and the variant of the change.

    The record identifies a mutant by its line's text, the change, and its position among identical ones: so it stays
    the same if other lines of the file change.
    """

    file: str
    node: int
    variant: int
    line: int
    change: str
    code: str
    place: int


def changes(node: ast.AST) -> list[tuple[str, ast.AST]]:
    """Return the possible changes of a node, each with its description."""
    return [*_operators(node), *_values(node), *_names(node)]


def _operators(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.BinOp | ast.BoolOp):
        for other in SWAPS.get(type(node.op), ()):
            yield f"{_name(node.op)} to {_name(other)}", _with(node, op=other())
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in SWAPS[type(node.ops[0])]:
            yield f"{_name(node.ops[0])} to {_name(other)}", _with(node, ops=[other()])
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        yield f"without {_name(node.op)}", node.operand
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield "condition negated", _with(node, test=ast.UnaryOp(ast.Not(), node.test))


def _values(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} to {not node.value}", ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        for other in (node.value + 1, node.value - 1):
            yield f"{node.value} to {other}", ast.Constant(other)


def _names(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield f"{node.attr} to {NAMES[node.attr]}", _with(node, attr=NAMES[node.attr])
    elif isinstance(node, ast.Name) and node.id in NAMES and isinstance(node.ctx, ast.Load):
        yield f"{node.id} to {NAMES[node.id]}", _with(node, id=NAMES[node.id])


def _name(operator: Any) -> str:
    return operator.__name__ if isinstance(operator, type) else type(operator).__name__


def _with(node: ast.AST, **parts: Any) -> ast.AST:
    changed = copy.copy(node)
    for name, part in parts.items():
        setattr(changed, name, part)
    return changed


def places(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes to mutate: no annotations, error messages, assertions or decorators."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params") or isinstance(
            tree, ast.Raise | ast.Assert
        ):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield node
                yield from places(node)


def mutants_of(file: Path, room: Path) -> list[Mutant]:
    """Return all mutants of a file."""
    text = file.read_text(encoding="utf-8")
    name, found, rows, alike = str(file.relative_to(room)), list[Mutant](), text.splitlines(), Counter[str]()
    for number, node in enumerate(places(ast.parse(text))):
        line = getattr(node, "lineno", 0)
        for variant, (change, _) in enumerate(changes(node)):
            code = rows[line - 1].strip()
            found.append(Mutant(name, number, variant, line, change, code, alike[f"{change} {code}"]))
            alike[f"{change} {code}"] += 1
    return found


def all_mutants(rooms: list[str]) -> dict[str, list[Mutant]]:
    """Return the mutants of every file in some folders."""
    package = ROOT / "src" / "evenhand"
    files = sorted(path for room in rooms for path in (package / room).rglob("*.py"))
    return {
        name: mutants_of(file, package) for file in files if (name := str(file.relative_to(package))) not in LEFT_OUT
    }


def sample(rooms: list[str], most: int, run: Collection[str] = (), seed: int = 0) -> list[Mutant]:
    """Draw mutants of every file in proportion; already run mutants come first."""
    ranked = []
    for file, own in all_mutants(rooms).items():
        rng = random.Random(f"{seed} {file}")  # noqa: S311
        rng.shuffle(own)
        first = rng.random()
        own.sort(key=lambda mutant: _key(asdict(mutant)) not in run)
        ranked += [((rank + first) / len(own), mutant) for rank, mutant in enumerate(own)]
    ranked.sort(key=lambda entry: (entry[0], entry[1].file, entry[1].node, entry[1].variant))
    return [mutant for _, mutant in ranked[:most]]


def _parsed(mutant: Mutant) -> tuple[ast.Module, ast.AST]:
    tree = ast.parse((TREE / "src" / "evenhand" / mutant.file).read_text(encoding="utf-8"))
    return tree, next(node for number, node in enumerate(places(tree)) if number == mutant.node)


def mutated(mutant: Mutant) -> ast.Module:
    """Return the syntax tree of the module with the change."""
    tree, target = _parsed(mutant)
    made = changes(target)[mutant.variant][1]

    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return ast.copy_location(made, target) if node is target else self.generic_visit(node)

    return cast(ast.Module, ast.fix_missing_locations(Swap().visit(tree)))


def in_function(tree: ast.Module, target: ast.AST) -> tuple[bool, ast.AST]:
    """Return whether a node is in the body of a function, and its innermost enclosing statement."""
    around: dict[ast.AST, ast.AST] = {part: node for node in ast.walk(tree) for part in ast.iter_child_nodes(node)}
    inside, below, node = False, target, around.get(target)
    statement: ast.AST | None = target if isinstance(target, ast.stmt) else None
    while node is not None:
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            inside |= below is not node.args and below not in getattr(node, "decorator_list", ())
        if statement is None and isinstance(node, ast.stmt):
            statement = node
        below, node = node, around.get(node)
    return inside, statement or target


def spans_of(mutant: Mutant) -> tuple[bool, dict[str, list[tuple[int, int]]]]:
    """Return whether the change is within a function, and the lines whose tests may notice it."""
    tree, target = _parsed(mutant)
    inside, statement = in_function(tree, target)
    if inside:
        return True, {mutant.file: [_header(statement)]}
    spans: dict[str, list[tuple[int, int]]] = {mutant.file: [(1, 10**6)]}
    if isinstance(statement, ast.FunctionDef):
        spans = {mutant.file: [(statement.body[0].lineno, statement.end_lineno or 10**6)]}
    elif names := {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and _stored(node)}:
        spans = _uses(names) or spans
    return False, spans


def _header(statement: ast.AST) -> tuple[int, int]:
    """Return the lines of a statement, without its nested statements."""
    body = getattr(statement, "body", None)
    first, last = getattr(statement, "lineno", 1), getattr(statement, "end_lineno", 10**6)
    return first, (max(first, body[0].lineno - 1) if isinstance(body, list) else last)


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


@cache
def _texts() -> dict[str, ast.Module]:
    package = TREE / "src" / "evenhand"
    files = [*package.glob("stats/**/*.py"), *package.glob("core/**/*.py")]
    return {str(file.relative_to(package)): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def _uses(names: set[str]) -> dict[str, list[tuple[int, int]]]:
    """Return the lines within functions that use one of the names."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for file, tree in _texts().items():
        for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
            for node in ast.walk(function):
                if (isinstance(node, ast.Name) and node.id in names) or (
                    isinstance(node, ast.Attribute) and node.attr in names
                ):
                    spans.setdefault(file, []).append((node.lineno, node.lineno))
    return spans


# Running --------------------------------------------------------------------------------------------------------------


def tried(mutant: Mutant, runner: Runner, budget: float) -> tuple[str, str]:
    """Return whether a mutant was killed, timed out or survived, and the test responsible."""
    inside, spans = spans_of(mutant)
    tests = runner.covering(spans, Path(mutant.file).stem, budget)
    if not tests:
        return "survived", "no quick test runs the line"
    old, new = _parsed(mutant)[0], mutated(mutant)
    ended = runner.try_code(mutant.file, old, new, tests) if inside else None
    return ended or runner.try_module(mutant.file, ast.unparse(new), tests)


def named_tests() -> list[Path]:
    """Return the test files in other folders that import from `stats/` or `core/`."""
    own = tuple(f"{COPY}/{folder}/" for folder in (*TESTS, *MORE_TESTS))
    files = [file for file in sorted((COPY / "tests").rglob("test_*.py")) if not str(file).startswith(own)]
    names = ("from evenhand.stats", "from evenhand.core")
    return [file.relative_to(COPY) for file in files if any(name in file.read_text("utf-8") for name in names)]


def prepare() -> None:
    """Copy the tree, disable numba, and import the large libraries once."""
    shutil.rmtree(COPY, ignore_errors=True)
    for part in ("src", "tests", "benchmarks", "docs", "examples"):
        ignored = shutil.ignore_patterns("__pycache__", "_build", "mutants.jsonl")
        shutil.copytree(ROOT / part, COPY / part, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", COPY)
    os.environ |= {"NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(COPY / "src")}
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
    sys.dont_write_bytecode = True
    sys.path = [str(COPY / "src"), str(COPY), *(path for path in sys.path if not path.endswith("/src"))]
    os.chdir(COPY)
    import hypothesis

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", phases=phases, derandomize=True, database=None, deadline=None)
    hypothesis.settings.load_profile("mutants")
    for name in LIBRARIES:
        importlib.import_module(name)


def wilson(killed: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    z, share = 1.959964, killed / max(n, 1)
    middle, spread = share + z * z / (2 * n), z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - spread) / (1 + z * z / n), (middle + spread) / (1 + z * z / n)


def told(lines: list[dict[str, Any]]) -> str:
    """Return a report of the survivors and of the scores of each folder."""
    said = survivors(lines)
    for room in sorted({line["file"].split("/")[0] for line in lines}):
        own = [line for line in lines if line["file"].startswith(f"{room}/")]
        for version in sorted({line["drawn"] for line in own}):
            drawn = [line for line in own if line["drawn"] == version]
            real = [line["outcome"] for line in drawn if "equivalent" not in line]
            said.append(f"{room}/ as drawn at {version}: {score([line['outcome'] for line in drawn])}")
            said.append(
                f"{room}/ as drawn at {version}, without {len(drawn) - len(real)} that change nothing: {score(real)}"
            )
        said.append(f"{room}/ after more tests: {score([_last(line) for line in own])}")
        real = [_last(line) for line in own if "equivalent" not in line]
        said.append(f"{room}/ without {len(own) - len(real)} that change nothing: {score(real)}")
    return "\n".join(said)


def _last(line: dict[str, Any]) -> str:
    return str(line.get("again", line["outcome"]))


def _is_open(line: dict[str, Any]) -> bool:
    return _last(line) == "survived" and "equivalent" not in line


def survivors(lines: list[dict[str, Any]]) -> list[str]:
    """Return the changes that no test noticed."""
    left = [line for line in lines if _is_open(line)]
    return [f"{line['file']}:{line['line']}: {line['change']}: {line['code']}" for line in left]


def score(outcomes: list[str]) -> str:
    """Return the number of killed mutants, with the interval of their share, as text."""
    killed, n = len(outcomes) - outcomes.count("survived"), len(outcomes)
    low, high = wilson(killed, n) if n else (0.0, 1.0)
    slow = f", {outcomes.count('timeout')} of them by running out of time" if "timeout" in outcomes else ""
    return f"{killed} of {n} noticed, {killed / max(n, 1):.1%} ({low:.1%} to {high:.1%}){slow}"


def recorded() -> dict[str, dict[str, Any]]:
    """Return the recorded mutants whose line is still in the code."""
    lines: dict[str, dict[str, Any]] = {}
    if RECORD.exists():
        for line in map(json.loads, RECORD.read_text(encoding="utf-8").splitlines()):
            lines[_key(line)] = lines.get(_key(line), {}) | line
    rooms = sorted({line["file"].split("/")[0] for line in lines.values()})
    now = {_key(asdict(mutant)): mutant for own in all_mutants(rooms).values() for mutant in own}
    return {key: line | asdict(now[key]) for key, line in lines.items() if key in now}


def _key(line: dict[str, Any]) -> str:
    return f"{line['file']} {line['place']} {line['change']} {line['code']}"


def main() -> int:
    """Run the remaining mutants, and print the survivors and scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", default="stats,core", help="folders of the package, by a comma apart")
    parser.add_argument("--most", type=int, default=600, help="how many mutants of each folder")
    parser.add_argument("--again", action="store_true", help="run the survivors again, with more tests")
    parser.add_argument("--near", action="store_true", help="with --again: without the tests of other folders")
    parser.add_argument("--seconds", type=float, help="of tests that a mutant may cost; 5, or 20 with --again")
    parser.add_argument("--show", action="store_true", help="list the survivors and run nothing")
    given, lines = parser.parse_args(), recorded()
    budget = given.seconds or BUDGET * (4 if given.again else 1)
    most = 10**9 if given.again else given.most
    drawn = [mutant for room in given.rooms.split(",") for mutant in sample([room], most, lines)]
    if given.again:
        left = {key for key, line in lines.items() if _is_open(line)}
        run_all(
            [mutant for mutant in drawn if _key(asdict(mutant)) in left], lines, budget, again=True, near=given.near
        )
    elif not given.show:
        run_all([mutant for mutant in drawn if _key(asdict(mutant)) not in lines], lines, budget, again=False)
    sys.stdout.write(told(list(lines.values())) + "\n")
    return 0


def run_all(
    todo: list[Mutant], lines: dict[str, dict[str, Any]], budget: float, *, again: bool, near: bool = True
) -> None:
    """Run mutants one after the other and record each; finally sort the record."""
    version = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    prepare()
    import pytest

    def work(runner: Runner) -> None:
        with RECORD.open("a", encoding="utf-8") as file:
            for mutant in todo:
                before = os.times()
                outcome, by = tried(mutant, runner, budget)
                after = os.times()
                seconds = round(after.user + after.children_user - before.user - before.children_user, 2)
                fresh = {"outcome": outcome, "seconds": seconds, "drawn": version.stdout.strip()}
                line = asdict(mutant) | ({"again": outcome} if again else fresh) | {"by": by}
                lines[_key(line)] = lines.get(_key(line), {}) | line
                file.write(json.dumps(line) + "\n")
                file.flush()

    elsewhere = [*MORE_TESTS, *map(str, named_tests())] if again and not near else []
    pytest.main([*WORDS, *TESTS, *elsewhere], plugins=[Runner(COPY, KNOWN, work)])
    ordered = sorted(lines.values(), key=lambda line: (line["file"], line["line"], line["node"], line["variant"]))
    RECORD.write_text("".join(json.dumps(line) + "\n" for line in ordered), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
