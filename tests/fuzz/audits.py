"""Whole audits: a sound table and sound settings, then at most one defect in the table, its roles or the settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

import evenhand as eh
from evenhand.errors import EvenhandError

from . import laws
from .settings import NUMBER_ROLES, ODD_VALUES, PLANS, Settings, inside, mutated, one, settings
from .tables import Columns, as_kind, kinds, people, spoilt

Outcome = Literal["finished", "refused"]


@dataclass(frozen=True)
class Target:
    """Something that is fuzzed: what is drawn, what is done with it, and how often in a round."""

    draw: SearchStrategy[Any]
    run: Callable[[Any, Path], Any]
    turns: int = 1

    def outcome(self, case: Any, folder: Path) -> Outcome:
        """Run a case; anything but a lawful result or a sentence of ours is a failure."""
        try:
            self.run(case, folder)
        except EvenhandError as error:
            laws.require_sentence(error)
            return "refused"
        return "finished"


@dataclass(frozen=True, repr=False)
class Case:
    """A table of some kind with its roles, and the settings of audits."""

    kind: str
    columns: Columns
    roles: Settings
    sections: dict[str, Any]
    also: str = ""

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        return f"kind={self.kind!r}, roles={self.roles!r}, sections={self.sections!r}, columns={self.columns!r}"

    def table(self, folder: Path) -> Any:
        """Return the table as its kind holds it."""
        return eh.Table(as_kind(self.columns, self.kind, folder), **self.roles)


@st.composite
def cases(draw: DrawFn, audits: tuple[str, ...], *, limited: bool = False) -> Case:
    """Draw a case of some audits of one table, with thresholds where `limited`."""
    plans = [PLANS[audit] for audit in audits]
    columns = draw(people(tuple(dict.fromkeys(name for plan in plans for name in plan.columns))))
    roles = {name: draw(value) for plan in plans for name, value in plan.roles.items()}
    if audits == ("parity",) and draw(one(False, False, False, True)):
        roles |= {name: draw(value) for name, value in NUMBER_ROLES.items()}
    sections = {audit: draw(settings(audit, roles, limited=limited)) for audit in audits}
    case = Case(draw(kinds()), columns, roles, sections, draw(one(*[""] * 12, "frames", "engines", "engines", "view")))
    flaw = draw(one(None, None, None, "table", "settings", "roles"))
    if flaw == "table":
        return replace(case, columns=draw(spoilt(columns)))
    if flaw == "settings":
        audit = draw(st.sampled_from(audits))
        return replace(case, sections=sections | {audit: draw(mutated(audit, sections[audit]))})
    if flaw == "roles":
        return replace(case, roles=draw(mutated_roles(roles)))
    return case


ROLES = ("id", "outcome", "outcome_kind", "positive", "groups", "cuts", "labels", "one_hot", "predictions", "weight")
MORE_ROLES = (
    "cluster",
    "count",
    "threshold",
    "percentile",
    "favourable",
    "selected_word",
    "people",
    "missing",
    "encoding",
    "delimiter",
    "decimal",
)


@st.composite
def mutated_roles(draw: DrawFn, roles: Settings) -> Settings:
    """Draw the roles of a table with one changed."""
    name = draw(st.sampled_from((*ROLES, *MORE_ROLES, "missing_values", *roles)))
    odd = draw(
        st.sampled_from(
            (*ODD_VALUES, {"age": [1, 2]}, {"g": {"a": "A"}}, {"of": 50}, {"m": {"column": "s", "range": [0, 2]}})
        )
    )
    return roles | {name: draw(inside(roles[name], odd)) if roles.get(name) and draw(st.booleans()) else odd}


def run_one(audit: str, case: Case, folder: Path) -> None:
    """Run one audit by its function."""
    given = dict(case.sections[audit])
    function = getattr(eh, audit)
    if audit == "reliability":
        function = partial(eh.reliability, given.pop("model", None))
    result = function(case.table(folder), **given)
    laws.require_lawful(result)
    if case.also == "frames":
        for name in result.tables:
            result.to_frame(name)
    elif case.also == "view":
        laws.require_whole(result.section().__class__.__name__)
        assert result._repr_html_()
    elif case.also == "engines" and case.kind in ("polars", "pandas", "pyarrow", "polars lazy", "duckdb", "parquet"):
        same = replace(case, kind="mapping")
        again = dict(case.sections[audit])
        function = partial(eh.reliability, again.pop("model", None)) if audit == "reliability" else function
        assert function(same.table(folder), **again).to_dict() == result.to_dict(), "engines differ"


def run_all(case: Case, folder: Path) -> None:
    """Run several audits of a table by `eh.audit`, save and load them."""
    audit = eh.audit(case.table(folder), **case.sections)
    laws.require_documented(audit)
    if case.also == "frames":
        audit.save(folder / "out", formats=("md",))
        assert eh.Audit.load(folder / "out").to_json() == audit.to_json()
    elif case.also == "view":
        assert audit._repr_html_()


def run_assertion(case: Case, folder: Path) -> None:
    """Hold a table against thresholds."""
    sections = {audit: dict(given) for audit, given in case.sections.items()}
    limits = sections["parity"].pop("thresholds", ())
    try:
        laws.require_documented(
            eh.testing.assert_meets(case.table(folder), limits, strict=case.also == "view", **sections)
        )
    except AssertionError as failed:
        if not str(failed).startswith(f"{str(failed).split(' ')[0]} of "):
            raise
        laws.require_whole(str(failed))


def run_comparison(pair: tuple[Case, Case], folder: Path) -> None:
    """Compare two audits of different people."""
    audits = [eh.audit(case.table(folder), **case.sections) for case in pair]
    compared = eh.compare(*audits)
    for change in compared.changes:
        laws.require_whole(change.message().text)
    assert compared.to_markdown()
    assert compared.to_json()


TURNS = {"parity": 4, "effort": 3, "agreement": 2, "improvability": 2}
AUDITS: dict[str, Target] = {
    **{f"eh.{audit}": Target(cases((audit,)), partial(run_one, audit), TURNS.get(audit, 1)) for audit in PLANS},
    "eh.audit": Target(
        one(("parity",), ("parity", "agreement"), ("parity", "effort"), ("parity", "disagreement")).flatmap(cases),
        run_all,
        2,
    ),
    "eh.testing.assert_meets": Target(cases(("parity",), limited=True), run_assertion, 2),
    "eh.compare": Target(st.tuples(cases(("parity",)), cases(("parity",))), run_comparison),
}
