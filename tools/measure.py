"""Measure the size and shape of the package, and print one table.

`make measure` measures the working tree. `python tools/measure.py --rev REVISION` measures another revision: it
is unpacked into a temporary folder and formatted, ignoring `# fmt: skip`, so that revisions are counted
alike. `make lint` runs it with `--check`: it then only reports what has become too complex or untyped, and fails.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path

from radon.complexity import cc_visit
from radon.visitors import Class

HERE = Path(__file__).resolve().parent.parent
MOST_COMPLEX = 12
STILL_COMPLEX = (
    "src/evenhand/audits/agreement/estimate.py value_records",
    "src/evenhand/audits/disagreement/section.py _stakeholder_parts",
    "src/evenhand/stats/pairs/fairness.py fairness_by_weight",
    "src/evenhand/stats/pairs/result.py compare",
)
"""Functions exempt from the complexity limit; the list may only become shorter."""
MOST_ANY, MOST_LONG = 150, 15
"""Allowed numbers of parameters and returns of type `Any`, and of functions with over five positional arguments."""
MOST_POSITIONAL = 5
REPEATED_LINES = 6
SMALL_FILE = 40
FMT_SKIP = "# fmt" + ": skip"  # in two parts, so that this file does not count itself
_PROBE = """
import inspect, json, sys
import evenhand as eh
from evenhand.audits import REGISTRY
getattr(eh, next(iter(REGISTRY)))
modules = sum(name.split(".")[0] == "evenhand" for name in sys.modules)
arguments = {name: len(inspect.signature(getattr(eh, name)).parameters) for name in REGISTRY if hasattr(eh, name)}
print(json.dumps({"modules": modules, "arguments": arguments}))
"""


def main() -> None:
    """Measure the working tree or a revision, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rev", help="a git revision; without it, the working tree")
    parser.add_argument("--list", action="store_true", help="also list the complex functions and the repeated lines")
    parser.add_argument("--check", action="store_true", help="only fail where a function has become too complex")
    options = parser.parse_args()
    if options.check:
        sys.exit(check(HERE))
    if options.rev is None:
        report(HERE, "src, working tree", count_skips(HERE), options.list)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unpack(options.rev, folder)
        skips = count_skips(folder)
        format_all(folder)
        report(folder, f"src at {options.rev}", skips, options.list)


def check(root: Path) -> str | int:
    """Return 0, or a report of functions that exceed the limits on complexity, `Any` or arguments."""
    files = read(root)
    anys, longs = bare_anys(files), long_functions(files)
    found = [f"{len(anys)} parameters and returns are bare Any; at most {MOST_ANY}, please."] * (len(anys) > MOST_ANY)
    found += [f"{len(longs)} functions take more than {MOST_POSITIONAL} positional arguments; at most {MOST_LONG}."] * (
        len(longs) > MOST_LONG
    )
    found += [
        f"{path}:{line} {name} has a complexity of {complexity}; at most {MOST_COMPLEX}, please."
        for path, text in files.items()
        for name, line, complexity in complex_functions(text)
        if f"{path} {name}" not in STILL_COMPLEX
    ]
    return "\n".join(found) or 0


def unpack(revision: str, folder: Path) -> None:
    """Unpack a revision of the repository into a folder."""
    archive = subprocess.run(["git", "archive", revision], cwd=HERE, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


def format_all(folder: Path) -> None:
    """Format the package in the style of the working tree, ignoring exemptions from the formatter."""
    for path in sources(folder):
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join(line.partition(FMT_SKIP)[0].rstrip() for line in lines) + "\n", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", "src"], cwd=folder, check=True)


def count_skips(root: Path) -> int:
    """Return the number of lines exempt from the formatter."""
    return sum(path.read_text(encoding="utf-8").count(FMT_SKIP) for path in sources(root))


def report(root: Path, title: str, skips: int, listed: bool) -> None:
    """Print the table of measures of one state of the package."""
    files = read(root)
    code = {path: code_lines(text) for path, text in files.items()}
    complex_ones = [
        f"{path}:{line} {name} {complexity}"
        for path, text in files.items()
        for name, line, complexity in complex_functions(text)
    ]
    repeated = repetitions(files)
    probe = json.loads(ask(root))
    rows: list[tuple[str, int]] = [
        ("code lines, without docstrings, comments and blanks", sum(map(len, code.values()))),
        ("Python files", len(files)),
        (f"files under {SMALL_FILE} lines of code", sum(len(lines) < SMALL_FILE for lines in code.values())),
        (f"functions with complexity above {MOST_COMPLEX}", len(complex_ones)),
        ("parameters and returns that are bare Any, or an alias of it", len(bare_anys(files))),
        (f"functions with more than {MOST_POSITIONAL} positional parameters", len(long_functions(files))),
        ("modules outside audits/ that import an audit", len(modules_that_import_an_audit(files))),
        (f"places that repeat {REPEATED_LINES} lines or more", len(repeated)),
        (FMT_SKIP, skips),
        ("modules loaded by eh.parity", probe["modules"]),
        *((f"arguments of eh.{name}", count) for name, count in probe["arguments"].items()),
    ]
    width = max(len(label) for label, _ in rows)
    print(title)
    for label, count in rows:
        print(f"{label:<{width}}  {count:>7,}")
    if listed:
        print("\nComplex functions", *complex_ones, sep="\n  ")
        print("\nBare Any", *bare_anys(files), sep="\n  ")
        print("\nMany positional parameters", *long_functions(files), sep="\n  ")
        print("\nModules that import an audit", *modules_that_import_an_audit(files), sep="\n  ")
        print("\nRepeated lines", *repeated, sep="\n  ")


def sources(root: Path) -> list[Path]:
    """Return the Python files of the package."""
    return sorted((root / "src").rglob("*.py"))


def read(root: Path) -> dict[str, str]:
    """Return the text of every Python file of the package, by path."""
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sources(root)}


def code_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines of code with their numbers, without docstrings, comments and blanks."""
    documented = {number for start, end in _docstrings(ast.parse(text)) for number in range(start, end + 1)}
    beside_code = (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
    numbers: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in beside_code:
            numbers.update(range(token.start[0], token.end[0] + 1))
    lines = text.splitlines()
    return [(number, lines[number - 1].strip()) for number in sorted(numbers - documented)]


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of every standalone string: docstrings, and notes below constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.end_lineno or node.lineno


def complex_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield name, line and complexity of functions above the limit on cyclomatic complexity."""
    for block in cc_visit(text):
        if not isinstance(block, Class) and block.complexity > MOST_COMPLEX:
            yield block.fullname, block.lineno, block.complexity


def bare_anys(files: dict[str, str]) -> list[str]:
    """Return the parameters and returns whose type is `Any` or an alias of it."""
    trees = {path: ast.parse(text) for path, text in files.items()}
    aliases = {"Any"} | {name for tree in trees.values() for name in _aliases_of_any(tree)}
    return [
        f"{path}:{function.lineno} {function.name} {name}"
        for path, tree in trees.items()
        for function in _functions(tree)
        for name, annotation in _annotations(function)
        if annotation is not None and ast.unparse(annotation).strip("'\"") in aliases
    ]


def _aliases_of_any(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.expr):
            written = ast.unparse(value)
            if written == "Any" or written.startswith("Annotated[Any,"):
                yield target.id


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _annotations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the parameters of a function and its return value, with their annotations."""
    given = function.args
    for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if parameter is not None:
            yield parameter.arg, parameter.annotation
    yield "return", function.returns


def long_functions(files: dict[str, str]) -> list[str]:
    """Return the functions with more positional arguments than allowed."""
    return [
        f"{path}:{function.lineno} {function.name}"
        for path, text in files.items()
        for function in _functions(ast.parse(text))
        if sum(p.arg not in ("self", "cls") for p in (*function.args.posonlyargs, *function.args.args))
        > MOST_POSITIONAL
    ]


def modules_that_import_an_audit(files: dict[str, str]) -> list[str]:
    """Return the modules outside `audits/` that import an audit, except the public package module."""
    return [
        path
        for path, text in files.items()
        if "/audits/" not in path and not path.endswith("evenhand/__init__.py")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evenhand.audits.")
    ]


def repetitions(files: dict[str, str]) -> list[str]:
    """Return the places that repeat a minimum number of earlier lines of code, ignoring imports."""
    first: dict[tuple[str, ...], tuple[str, int]] = {}
    places: list[str] = []
    for path, text in files.items():
        lines = _without_imports(text)
        end = 0  # of the current repeated run
        for start in range(len(lines) - REPEATED_LINES + 1):
            window = lines[start : start + REPEATED_LINES]
            known = first.setdefault(tuple(line for _, line in window), (path, window[0][0]))
            if known == (path, window[0][0]):
                continue
            if start >= end:
                places.append(f"{path}:{window[0][0]} as {known[0]}:{known[1]}")
            end = start + REPEATED_LINES
    return places


def _without_imports(text: str) -> list[tuple[int, str]]:
    tree = ast.parse(text)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    skipped = {number for node in imports for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return [(number, line) for number, line in code_lines(text) if number not in skipped]


def ask(root: Path) -> str:
    """Return the output of the probe in a fresh interpreter, for the package in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    command = [sys.executable, "-c", _PROBE]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
