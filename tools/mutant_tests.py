"""Find the tests that run a line of code, measure their cost, and run them on mutants of the line.

One process collects the tests once. Each mutant is tested in a fork of it, in which the changed functions get their
new code; after a change outside functions (a constant, a default) the fork reimports the package. Only tests that run
the changed line can notice it: each test was traced once, on the unchanged code, and passed.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import importlib
import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from types import CodeType, FrameType, FunctionType
from typing import Any

SLOW = 1.5
"""CPU seconds, traced and with fixtures, above which a test is too slow to use."""
CASES = 8
"""Maximum number of cases per parametrized test, evenly spaced."""
EVENTS = 3000
"""Maximum number of traced line events per function in one test; beyond it all its lines count as run."""
WORDS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow and not browser", "-W", "ignore"]
LEFT_OUT = ("stats/pairs/cuda.py",)
LEFT_OUT_TESTS = ("test_cuda.py", "test_workers.py", "test_compiled.py")
Tests = dict[str, dict[str, Any]]


def in_child(work: Callable[[Callable[[Any], None]], None], seconds: int) -> tuple[int, list[Any]]:
    """Run work in a fork with a CPU time limit; return its exit status and the JSON records it sent."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        try:
            work(lambda said: _tell(writing, said))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = [json.loads(line) for line in pipe.read().splitlines() if line.endswith((b"}", b"]"))]
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said


def _tell(pipe: int, said: Any) -> None:
    data = json.dumps(said).encode() + b"\n"
    while data:
        data = data[os.write(pipe, data) :]


class Trace:
    """Records the executed lines of `stats/` and `core/`."""

    def __init__(self, package: Path) -> None:
        self.package, self.lines = f"{package}/", dict[str, set[int]]()
        self.events, self.own = dict[CodeType, int](), dict[CodeType, bool]()

    def __enter__(self) -> Trace:
        threading.settrace(self.call)
        sys.settrace(self.call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def call(self, frame: FrameType, _event: str, _arg: object) -> Any:
        """Trace a call if the function belongs to the package."""
        code = frame.f_code
        own = self.own.get(code)
        if own is None:
            parts = code.co_filename.removeprefix(self.package)
            own = self.own[code] = parts != code.co_filename and parts.startswith(("stats/", "core/"))
        if not own or self.events.get(code, 0) > EVENTS:
            return None
        self.lines.setdefault(code.co_filename.removeprefix(self.package), set()).add(frame.f_lineno)
        return self.line

    def line(self, frame: FrameType, _event: str, _arg: object) -> Any:
        """Record a line; above the limit, count all lines of the function as run."""
        code = frame.f_code
        self.events[code] = self.events.get(code, 0) + 1
        lines = self.lines[code.co_filename.removeprefix(self.package)]
        lines.add(frame.f_lineno)
        if self.events[code] > EVENTS:
            frame.f_trace_lines = False
            lines.update(number for _, _, number in code.co_lines() if number)
        return self.line


def limit(seconds: float) -> None:
    """End this process after some CPU seconds, or about ten times as many seconds of wall time; 0 removes the limit."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * (seconds + 2) if seconds else 0.0)


def passed(item: Any, following: Any = None) -> bool:
    """Run one test; return whether it passed."""
    from _pytest.runner import runtestprotocol

    reports = runtestprotocol(item, nextitem=following, log=False)
    return not any(report.failed for report in reports) and any(report.when == "call" for report in reports)


class Runner:
    """A pytest plugin that replaces the test loop: it times and traces new tests, then runs the mutants.

    Parameters
    ----------
    copied
        The folder of the copied tree.
    known
        The file with the cost and the lines of each test.
    work
        The function to call with this runner after timing and tracing.
    """

    def __init__(self, copied: Path, known: Path, work: Callable[[Runner], None]) -> None:
        self.root, self.package, self.known, self.work = copied, copied / "src" / "evenhand", known, work
        self.items: dict[str, Any] = {}
        self.tests: Tests = {}
        self.functions: dict[str, list[FunctionType]] = {}

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run the mutants instead of the tests."""
        self.items = {item.nodeid: item for item in session.items}
        for file in sorted([*self.package.glob("stats/**/*.py"), *self.package.glob("core/**/*.py")]):
            parts = file.relative_to(self.package).with_suffix("")
            if str(file.relative_to(self.package)) not in LEFT_OUT and parts.name != "__init__":
                importlib.import_module("evenhand." + ".".join(parts.parts))
        for function in [found for found in gc.get_objects() if isinstance(found, FunctionType)]:
            if function.__code__.co_filename.startswith(f"{self.package}/"):
                own = function.__code__.co_filename.removeprefix(f"{self.package}/")
                self.functions.setdefault(own, []).append(function)
        gc.freeze()
        self._learn()
        self.work(self)
        return True

    def _learn(self) -> None:
        """Time and trace the new tests, and the tests whose file changed."""
        if self.known.exists():
            self.tests = json.loads(self.known.read_text(encoding="utf-8"))
        files: dict[str, list[str]] = {}
        for name in spaced(self.items):
            files.setdefault(name.split("::")[0], []).append(name)
        for file, names in files.items():
            if Path(file).name not in LEFT_OUT_TESTS:
                mark = hashlib.sha256((self.root / file).read_bytes()).hexdigest()[:12]
                self._learn_file([name for name in names if self.tests.get(name, {}).get("mark") != mark], mark)
                self.known.write_text(json.dumps(self.tests), encoding="utf-8")

    def _learn_file(self, todo: list[str], mark: str) -> None:
        while todo:
            _, said = in_child(partial(self._time, todo), 400)
            for name, line in zip(todo, said, strict=False):
                self.tests[name] = line | {"mark": mark}
            todo = todo[len(said) :]
            slow = todo[0].split("[")[0] if todo else ""  # its process ended; other cases will not be faster
            for name in [name for name in todo if name.split("[")[0] == slow]:
                self.tests[name] = {"mark": mark, "sound": False, "cost": SLOW, "lines": {}}
                todo.remove(name)

    def _time(self, names: list[str], tell: Callable[[Any], None]) -> None:
        for name in names:
            before = process_time()
            limit(SLOW)
            with Trace(self.package) as trace:
                sound = passed(self.items[name])
            limit(0)
            lines = {file: sorted(lines) for file, lines in trace.lines.items()} if sound else {}
            tell({"sound": bool(lines), "cost": round(process_time() - before, 4), "lines": lines})

    # One mutant -------------------------------------------------------------------------------------------------------

    def covering(self, spans: dict[str, list[tuple[int, int]]], own: str, budget: float) -> list[str]:
        """Return the tests that run one of the lines, cheap tests and the module's own first, within a budget."""
        found = [
            (test["cost"] * (0.3 if own in name else 1.0), name)
            for name, test in self.tests.items()
            if test["sound"] and name in self.items and _meets(test["lines"], spans)
        ]
        chosen, spent = list[str](), 0.0
        for _, name in sorted(found):
            spent += self.tests[name]["cost"]
            if spent > budget and chosen:
                break
            chosen.append(name)
        return chosen

    def try_code(self, file: str, old: ast.Module, new: ast.Module, tests: list[str]) -> tuple[str, str] | None:
        """Run tests in a fork with the changed functions replaced; return None if no function changed."""
        swaps = swapped(self.functions.get(file, []), old, new)

        def work(tell: Callable[[Any], None]) -> None:
            for function, code in swaps:
                function.__code__ = code
            self._run(tests, tell)

        return _outcome(*in_child(work, 60)) if swaps else None

    def try_module(self, file: str, text: str, tests: list[str]) -> tuple[str, str]:
        """Write the changed module, and run tests in a fork that reimports the package."""
        path = self.package / file
        whole = path.read_text(encoding="utf-8")

        def work(tell: Callable[[Any], None]) -> None:
            import pytest

            for name in [name for name in sys.modules if name.split(".")[0] in ("evenhand", "tests", "conftest")]:
                del sys.modules[name]
            again = Again(self, tests, tell)
            code = pytest.main([*WORDS, *tests], plugins=[again])
            if not again.ran:
                tell({"failed": f"collection ({int(code)})"})

        try:
            path.write_text(text, encoding="utf-8")
            return _outcome(*in_child(work, 90))
        finally:
            path.write_text(whole, encoding="utf-8")

    def _run(self, tests: list[str], tell: Callable[[Any], None]) -> None:
        items = [self.items[name] for name in tests if name in self.items]
        for item, following in zip(items, [*items[1:], None], strict=True):
            tell({"now": item.nodeid})
            limit(2 + 8 * self.tests[item.nodeid]["cost"])
            sound = passed(item, following)
            limit(0)
            if not sound:
                tell({"failed": item.nodeid})
                return
        tell({"failed": ""})


class Again:
    """A pytest plugin for a reimported package."""

    def __init__(self, runner: Runner, tests: list[str], tell: Callable[[Any], None]) -> None:
        self.runner, self.tests, self.tell, self.ran = runner, tests, tell, False

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run the tests in the given order."""
        self.ran = True
        self.runner.items = {item.nodeid: item for item in session.items}
        if session.testsfailed:
            self.tell({"failed": "collection"})
        else:
            self.runner._run(self.tests, self.tell)
        return True


def spaced(names: Iterable[str]) -> list[str]:
    """Return the names with at most `CASES` evenly spaced cases of each test."""
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(name.split("[")[0], []).append(name)
    return [name for cases in families.values() for name in cases[:: -(-len(cases) // CASES)]]


def _meets(lines: dict[str, list[int]], spans: dict[str, list[tuple[int, int]]]) -> bool:
    return any(
        low <= line <= high for file, ranges in spans.items() for line in lines.get(file, ()) for low, high in ranges
    )


def _outcome(status: int, said: list[Any]) -> tuple[str, str]:
    last = said[-1] if said else {"now": f"ended with {status}"}
    if "failed" not in last:
        return "timeout", last["now"]
    return ("killed" if last["failed"] else "survived"), last["failed"]


def swapped(functions: Iterable[FunctionType], old: ast.Module, new: ast.Module) -> list[tuple[FunctionType, CodeType]]:
    """Return the functions whose code differs between two versions of their module, with the new code."""
    before, after = (list(_codes(compile(tree, "module", "exec"))) for tree in (old, new))
    if len(before) != len(after):
        return []
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    return [(function, new) for function in functions for old, new in changed if function.__code__ == old]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
