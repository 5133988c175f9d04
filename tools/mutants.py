"""Change the code of `stats/` and `core/` in one place at a time, and see whether a test notices.

    python tools/mutants.py [--rooms stats,core] [--most 600] [--again] [--show]

The places are drawn with a seed, from every file in proportion to how many it has; a larger sample goes on where a
smaller one ended.
Each mutant runs the tests of its own module only, in a copy of the tree, with numba's compilation off, until one fails.
A mutant that no test notices survives: it is a change of meaning without a test, or no change of meaning at all.
The record has a line a mutant; `--again` runs the survivors once more, after tests were added. Why an own tool and not
cosmic-ray: that one has no stratified sample that can be extended, and starts Python anew for each mutant, which costs
more than the tests do. Here each mutant is a fork of a process that has read the large libraries already.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import resource
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from math import sqrt
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "mutants"
RECORD = ROOT / "build" / "mutants.jsonl"
LEFT_OUT = ("stats/pairs/cuda.py",)
"""Code that runs on a graphics card only."""
SLOW = 1.0
"""Seconds of the processor after which a test is too slow without numba to be used."""

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
    """One change: the node of a file by its number, and which of the node's changes."""

    file: str
    node: int
    variant: int
    line: int
    change: str


def changes(node: ast.AST) -> list[tuple[str, ast.AST]]:
    """Return what a node can be changed into."""
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
    """Yield the nodes in which meaning lies: no annotations, messages of errors, decorators or defaults of classes."""
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
    found = []
    for number, node in enumerate(places(ast.parse(file.read_text(encoding="utf-8")))):
        for variant, (change, _) in enumerate(changes(node)):
            found.append(Mutant(str(file.relative_to(room)), number, variant, getattr(node, "lineno", 0), change))
    return found


def sample(rooms: list[str], most: int, seed: int = 0) -> list[Mutant]:
    """Draw mutants of every file in proportion; a larger sample begins with the smaller one."""
    package, ranked = ROOT / "src" / "evenhand", []
    for file in sorted(path for room in rooms for path in (package / room).rglob("*.py")):
        if str(file.relative_to(package)) in LEFT_OUT:
            continue
        own = mutants_of(file, package)
        rng = random.Random(f"{seed} {file.relative_to(package)}")  # noqa: S311
        rng.shuffle(own)
        first = rng.random()
        ranked += [((rank + first) / len(own), mutant) for rank, mutant in enumerate(own)]
    ranked.sort(key=lambda entry: (entry[0], entry[1].file, entry[1].node, entry[1].variant))
    return [mutant for _, mutant in ranked[:most]]


def mutated(mutant: Mutant) -> str:
    """Return the text of the file with the change."""
    tree = ast.parse((ROOT / "src" / "evenhand" / mutant.file).read_text(encoding="utf-8"))
    target = next(node for number, node in enumerate(places(tree)) if number == mutant.node)
    made = changes(target)[mutant.variant][1]

    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return made if node is target else self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Swap().visit(tree)))


def tests_of(file: str) -> tuple[list[str], list[str]]:
    """Return the tests of a module: its examples, the file of its name and those that name it; and its folder's."""
    module, tests = Path(file), ROOT / "tests"
    dotted = "evenhand." + ".".join(module.with_suffix("").parts).removesuffix(".__init__")
    own = tests / module.parent / f"test_{module.stem}.py"
    named = [path for path in tests.rglob("test_*.py") if f"{dotted} import" in path.read_text(encoding="utf-8")]
    small = [path for path in sorted(named, key=_size) if _size(path) < 30_000]
    near = list(dict.fromkeys(path for path in (own, *small[:3]) if path.exists()))
    far = [path for path in sorted((tests / module.parent).glob("test_*.py"), key=_size) if path not in near]
    shown = [[str(path.relative_to(ROOT)) for path in paths] for paths in (near, far[:8])]
    return [f"src/evenhand/{file}", *shown[0]], shown[1]


def _size(path: Path) -> int:
    return path.stat().st_size


# Running --------------------------------------------------------------------------------------------------------------


class Watch:
    """A plugin of pytest that leaves tests out, stops those that take too long, and notes what failed."""

    def __init__(self, without: set[str]) -> None:
        self.without, self.failed = without, list[str]()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out tests that cannot be used without numba."""
        items[:] = [item for item in items if item.nodeid not in self.without]

    def pytest_runtest_logstart(self) -> None:
        """Give a test its seconds."""
        signal.signal(signal.SIGPROF, _too_slow)
        signal.setitimer(signal.ITIMER_PROF, SLOW)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note what failed."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        if report.failed:
            self.failed.append(report.nodeid)


def _too_slow(*_: Any) -> None:
    raise TimeoutError("too slow without numba")


def in_child(work: Any, seconds: int) -> tuple[int, str]:
    """Do the work in a fork with so many seconds of the processor; return its exit status and what it says."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code, said = work()
        os.write(writing, said.encode())
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return (os.waitstatus_to_exitcode(status), said)


def run_tests(tests: list[str], without: set[str]) -> tuple[int, str]:
    """Run tests in the copy until two fail; say which."""
    import pytest

    os.chdir(COPY)
    sys.path[:0] = [str(COPY / "src"), str(COPY / "benchmarks")]
    watch = Watch(without)
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", "-W", "ignore", "--maxfail=2"]
    code = pytest.main([*words, *tests], plugins=[watch])
    return int(code), json.dumps(watch.failed)


class Whole(dict[str, bool]):
    """Whether a test passes, and quickly, on the code as it is; found out when a mutant fails it first."""

    def __missing__(self, test: str) -> bool:
        self[test] = in_child(lambda: run_tests([test], set()), 120)[0] == 0
        return self[test]


def tried(mutant: Mutant, passes: Whole) -> str:
    """Return whether a mutant was killed by the tests of its module or folder, ran out of time, or survived."""
    for files in tests_of(mutant.file):
        failed: list[str] | None = None
        while files and failed != []:
            useless = {test for test, sound in passes.items() if not sound}
            code, failed = _run_mutated(mutant, files, useless)
            if code not in (0, 1, 5):
                return "timeout" if code < 0 else "killed"
            if any(passes[test] for test in failed):
                return "killed"
    return "survived"


def _run_mutated(mutant: Mutant, files: list[str], without: set[str]) -> tuple[int, list[str]]:
    path = COPY / "src" / "evenhand" / mutant.file
    whole = path.read_text(encoding="utf-8")
    try:
        path.write_text(mutated(mutant), encoding="utf-8")
        code, said = in_child(lambda: run_tests(files, without), 120)
    finally:
        path.write_text(whole, encoding="utf-8")
    return code, json.loads(said or "[]")


def prepare() -> None:
    """Copy the tree, turn numba off, and read the large libraries once."""
    shutil.rmtree(COPY, ignore_errors=True)
    for part in ("src", "tests", "benchmarks", "docs"):
        shutil.copytree(ROOT / part, COPY / part, ignore=shutil.ignore_patterns("__pycache__", "_build", "results"))
    shutil.copy(ROOT / "pyproject.toml", COPY)
    os.environ |= {"NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(COPY / "src")}
    sys.dont_write_bytecode = True
    sys.path = [path for path in sys.path if not path.endswith("/src")]
    for name in ("hypothesis", "numba", "pandas", "polars", "pydantic", "pytest", "scipy.stats", "narwhals", "duckdb"):
        __import__(name)


def wilson(killed: int, n: int) -> tuple[float, float]:
    """Return Wilson's interval of a share at 95 %."""
    z, share = 1.959964, killed / max(n, 1)
    middle, spread = share + z * z / (2 * n), z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - spread) / (1 + z * z / n), (middle + spread) / (1 + z * z / n)


def told(lines: list[dict[str, Any]]) -> str:
    """Return the survivors, and the score of each room before and after tests were added."""
    said = survivors(lines)
    for room in sorted({line["file"].split("/")[0] for line in lines}):
        own = [line for line in lines if line["file"].startswith(f"{room}/")]
        said.append(f"{room}/: {score([line['outcome'] for line in own])}")
        if any("again" in line for line in own):
            said.append(f"{room}/ after more tests: {score([line.get('again', line['outcome']) for line in own])}")
    return "\n".join(said)


def survivors(lines: list[dict[str, Any]]) -> list[str]:
    """Return where no test noticed a change."""
    left = [line for line in lines if line.get("again", line["outcome"]) == "survived"]
    return [f"{line['file']}:{line['line']}: {line['change']}" for line in left]


def score(outcomes: list[str]) -> str:
    """Return how many mutants were killed, with the interval of their share."""
    killed, n = len(outcomes) - outcomes.count("survived"), len(outcomes)
    low, high = wilson(killed, n) if n else (0.0, 1.0)
    return f"{killed} of {n} killed, {killed / max(n, 1):.1%} ({low:.1%} to {high:.1%})"


def recorded() -> dict[str, dict[str, Any]]:
    """Return what became of the mutants that were run."""
    lines: dict[str, dict[str, Any]] = {}
    if RECORD.exists():
        for line in map(json.loads, RECORD.read_text(encoding="utf-8").splitlines()):
            lines[_key(line)] = lines.get(_key(line), {}) | line
    return lines


def main() -> int:
    """Run the mutants that are still to be run, and tell the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", default="stats,core", help="folders of the package, by a comma apart")
    parser.add_argument("--most", type=int, default=600, help="how many mutants of each folder")
    parser.add_argument("--again", action="store_true", help="run the survivors again")
    parser.add_argument("--show", action="store_true", help="list the survivors and run nothing")
    given, lines = parser.parse_args(), recorded()
    if given.again:
        survived = [line for line in lines.values() if line["outcome"] == "survived"]
        run_all([Mutant(*(line[part.name] for part in fields(Mutant))) for line in survived], lines, again=True)
    elif not given.show:
        chosen = [mutant for room in given.rooms.split(",") for mutant in sample([room], given.most)]
        run_all([mutant for mutant in chosen if _key(asdict(mutant)) not in lines], lines, again=False)
    sys.stdout.write(told(list(lines.values())) + "\n")
    return 0


def _key(line: dict[str, Any]) -> str:
    return f"{line['file']} {line['node']} {line['variant']}"


def run_all(todo: list[Mutant], lines: dict[str, dict[str, Any]], *, again: bool) -> None:
    """Run mutants one after the other, and record each."""
    prepare()
    passes = Whole()
    RECORD.parent.mkdir(exist_ok=True)
    with RECORD.open("a", encoding="utf-8") as file:
        for mutant in todo:
            outcome = tried(mutant, passes)
            line = asdict(mutant) | ({"again": outcome} if again else {"outcome": outcome})
            lines[_key(line)] = lines.get(_key(line), {}) | line
            file.write(json.dumps(line) + "\n")
            file.flush()


if __name__ == "__main__":
    sys.exit(main())
