"""The report section of a profile, and all profiles of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from evenhand.after.counting import counting_result
from evenhand.after.profiles import NO_ADVICE, PROFILES
from evenhand.after.profiles.charts import impact_figure
from evenhand.after.profiles.checklists import checklist, without_rates
from evenhand.after.profiles.result import Clause, Impact, Pooled, ProfileResult, Rate
from evenhand.after.profiles.tables import (
    SMALL_SHARE,
    count_notes,
    covered_groupings,
    impact_rows,
    is_reverse,
    pooled_rows,
    rate_notes,
    rate_rows,
    unknown_notes,
)
from evenhand.core.display import Cell, DisplayTable, Figure, Link, Number, Range, Section, make_table
from evenhand.core.records import OK
from evenhand.core.result import Result
from evenhand.errors import ConfigError
from evenhand.messages import Message
from evenhand.messages.formats import show, show_confidence
from evenhand.table.roles import MISSING, SMALL

if TYPE_CHECKING:
    from evenhand.run.config import AuditConfig
    from evenhand.table.table import Table

OPEN_TABLES = 6
"""The number of a profile's tables that are unfolded."""

_NOT_COUNTED = {MISSING: "not known, not counted", SMALL: "hidden, not counted"}
_FLIPS = {"no": "no", "crosses": "yes: crosses 4/5", "overtakes": "yes: then the higher rate"}


def make_profiles(config: AuditConfig, results: Mapping[str, Result], table: Table | None) -> tuple[ProfileResult, ...]:
    """Return the profiles named in a configuration, with their tables.

    Profiles that count people need `table`.
    """
    made = []
    for name in config.report.profile:
        tables: dict[str, tuple[Any, ...]] = {}
        notes: list[Message] = []
        if PROFILES[name].table and table is not None:
            tables, notes = _counted_table(name, config, _counting_result(results), table)
        clauses = tuple(checklist(name, config, results))
        if tables.get("rates") == ():
            clauses = tuple(without_rates(name, clauses, False, _why_no_counts(config)))
        if clauses:
            tables["checklist"] = clauses
        made.append(ProfileResult(name, PROFILES[name].date, tuple(notes), tables))
    return tuple(made)


def _counting_result(results: Mapping[str, Result]) -> Result:
    """Return the result that counts people; `require_counts` has checked that it exists."""
    counting = counting_result(results)
    if counting is None:
        raise ConfigError("no audit of this run counts people by group and decision.")
    return counting


def _counted_table(
    name: str, config: AuditConfig, result: Result, table: Table
) -> tuple[dict[str, tuple[Any, ...]], list[Message]]:
    """Return the tables and notes of a profile that counts people.

    Weighted and clustered data, and numeric predictions, have no counts.
    """
    counted = PROFILES[name].table or "rates"
    of_decisions = counted == "impact"
    notes = count_notes(result, config.data, [m for m in table.models if of_decisions or not table.has_scores(m)])
    if config.data.get("weight") is not None or config.data.get("cluster") is not None or _are_numbers(table):
        return {counted: ()}, [*notes]
    groupings, left_out = covered_groupings(table.groupings, config.report.profile_groupings)
    notes_shown = [left_out, *notes] if left_out else [*notes]
    if of_decisions:
        impacts = tuple(impact_rows(result, groupings))
        pooled = tuple(pooled_rows(result, impacts))
        tables = {"impact": impacts, **({"pooled": pooled} if pooled else {})}
        return tables, [*notes_shown, *unknown_notes(result, groupings)]
    return {"rates": tuple(rate_rows(result, table, groupings))}, [*notes_shown, *rate_notes(result, table)]


def _why_no_counts(config: AuditConfig) -> str:
    """Return the reason why there is no table of counts, as a remark in the checklist."""
    if config.data.get("weight") is not None:
        return "weighted data have no counts of people."
    if config.data.get("cluster") is not None:
        return "rows that belong together are no independent people."
    return "numbers select nobody."


def _are_numbers(table: Table) -> bool:
    """Return whether all predictions are numbers, so that nobody is selected."""
    return bool(table.models) and all(map(table.has_numbers, table.models))


def profile_section(result: ProfileResult, counted: Result | None) -> Section:
    """Return a profile's section; `counted` is the result with its counts of people, or None."""
    profile = PROFILES[result.name]
    impact, pooled, rates, clauses = (
        result.tables.get(table, ()) for table in ("impact", "pooled", "rates", "checklist")
    )
    parts: list[DisplayTable | Figure] = []
    if impact:
        parts.append(impact_figure(impact))
    if counted is not None:
        parts += [_impact_table(rows, counted, number) for number, rows in enumerate(_split_by_grouping(impact))]
        parts += [_pooled_table(rows, counted, number) for number, rows in enumerate(_split_by_grouping(pooled))]
        parts += [_rate_table(rows, counted, number) for number, rows in enumerate(_split_by_grouping(rates))]
    if clauses:
        parts.append(_clause_table(clauses))
    return Section(
        profile.title,
        profile.about,
        tuple(parts),
        profile.methods if impact or rates else (),
        notes=(
            Message("Dated: {date}. {advice}", {"date": result.date, "advice": NO_ADVICE}),
            Message("{law:sentences}", {"law": profile.status}),
            *result.notes,
            Message(
                "Sources: {sources:semicolons}. Not checked: {unchecked}",
                {"sources": profile.sources, "unchecked": profile.unchecked},
            ),
        ),
        caveats=profile.caveats if impact else (),
    )


def _split_by_grouping(rows: tuple[Any, ...]) -> list[list[Any]]:
    """Split rows by model and grouping."""
    parts: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        parts.setdefault((row.model, row.grouping), []).append(row)
    return list(parts.values())


def _impact_table(rows: list[Impact], counted: Result, number: int) -> DisplayTable:
    first = rows[0]
    reverse, among = is_reverse(counted, first.model), _highest_rate_note(rows, counted)
    columns: dict[str, Callable[[Any], Cell]] = {
        "Group": lambda r: r.group,
        "n": lambda r: Number(r.n, "count"),
        "Not selected" if reverse else "Selected": lambda r: Number(r.selected, "count"),
        "Rate": lambda r: Number(r.rate, "percent"),
        "Ratio to highest": lambda r: Number(r.ratio, "number"),
        f"{show_confidence(counted.spec.confidence)} interval": lambda r: Range(r.low, r.high, "number"),
        "Difference, points": lambda r: Number(None if r.group == r.highest else r.difference, "signed_points"),
        "Indicators": lambda r: _indicators(r, "comparison group" if among else "highest rate"),
        "SD": lambda r: Number(r.standard_deviations, "signed"),
        "Fisher p": lambda r: Number(r.p_value, "p"),
        "Shortfall": lambda r: Number(r.shortfall, "tenths"),
        "Missing to 4/5": lambda r: Number(None if r.group == r.highest else r.to_four_fifths, "count"),
        "Flip-one": lambda r: None if r.group == r.highest else _FLIPS[r.flip_one],
        "Remark": lambda r: "" if r.status == OK else r.status.text,
    }
    whom = "; counted are people not selected, the favourable decision" if reverse else ""
    compared = f"each group compared with {first.highest}, which has the highest rate{among}{whom}"
    return make_table(f"{first.model}, by {first.grouping}: {compared}", columns, rows, folded=number >= OPEN_TABLES)


def _pooled_table(rows: list[Pooled], counted: Result, number: int) -> DisplayTable:
    first, confidence = rows[0], show_confidence(counted.spec.confidence)
    columns: dict[str, Callable[[Any], Cell]] = {
        "Group": lambda r: r.group,
        "Events": lambda r: Number(r.events, "count"),
        "n": lambda r: Number(r.n, "count"),
        "Selected": lambda r: Number(r.selected, "count"),
        "Expected": lambda r: Number(r.expected, "tenths"),
        "Pooled ratio": lambda r: Number(r.ratio, "number"),
        f"{confidence} interval": lambda r: Range(r.low, r.high, "number"),
        "SD": lambda r: Number(r.standard_deviations, "signed"),
        "Exact p": lambda r: Number(r.p_value, "p"),
        "p of consistency": lambda r: Number(r.consistency, "p"),
        "Remark": lambda r: "" if r.status == OK else r.status.text,
    }
    within = ", ".join(getattr(counted.spec, "within", ()))
    caption = f"{first.model}, by {first.grouping}: each group compared with {first.highest}, pooled within {within}"
    return make_table(caption, columns, rows, folded=number >= OPEN_TABLES)


def _highest_rate_note(rows: list[Impact], counted: Result) -> str:
    """Return a note on the groups considered for the highest rate, if groups are excluded or hidden."""
    highest = next(row.rate for row in rows if row.group == row.highest)
    if any(row.rate > highest for row in rows):
        return f" of the groups with at least {counted.spec.min_count} people"
    hidden = any(getattr(value, "group", None) == SMALL for value in counted.rows("values", grouping=rows[0].grouping))
    return " of the groups shown" if hidden else ""


def _indicators(row: Impact, highest: str) -> str:
    if row.group == row.highest:
        return highest
    named = [word for word, holds in (("4/5", row.below_four_fifths), ("2 SD", row.is_far)) if holds]
    return ", ".join(named) or "none"


def _rate_table(rows: list[Rate], counted: Result, number: int) -> DisplayTable:
    first = rows[0]
    small = any(row.share is not None and row.share < SMALL_SHARE for row in rows)
    scoring = first.kind == "scoring"
    reverse = is_reverse(counted, first.model)
    decided, rate = ("Not selected", "Rate of not selected") if reverse else ("Selected", "Selection rate")
    columns: dict[str, Callable[[Any], Cell]] = {
        "Category": lambda r: _NOT_COUNTED.get(r.group, r.group),
        "n": lambda r: Number(r.n, "count"),
        "Above the median" if scoring else decided: lambda r: Number(r.counted, "count"),
        "Scoring rate" if scoring else rate: lambda r: Number(r.rate, "percent"),
        "Impact ratio": lambda r: Number(r.impact_ratio, "number"),
        "Without categories under 2 %": lambda r: Number(r.large_ratio if small else None, "number"),
        "Share of the people": lambda r: Number(r.share, "percent"),
        "Middle half of the scores": lambda r: Range(r.score_low, r.score_high, "number"),
        "Median score": lambda r: Number(r.score_median, "number"),
        "Remark": lambda r: "" if r.status == OK or r.group in _NOT_COUNTED else r.status.text,
    }
    return make_table(_rate_caption(rows, rate), columns, rows, folded=number >= OPEN_TABLES)


def _rate_caption(rows: list[Rate], rate: str) -> str:
    first = rows[0]
    if first.median is None:
        return f"{first.model}, by {first.grouping}: {rate.lower().replace('rate', 'rates')} and impact ratios"
    counted_rows = [row for row in rows if row.counted is not None]
    above = sum(row.counted or 0 for row in counted_rows) / max(1, sum(row.n for row in counted_rows))
    return (
        f"{first.model}, by {first.grouping}: scoring rates and impact ratios; {show(above, 'percent')} score above "
        f"the median of the full sample, {first.median:g}"
    )


def _clause_table(clauses: tuple[Clause, ...]) -> DisplayTable:
    rows = tuple(
        (row.clause, row.asks, row.where if row.place is None else Link(row.where, row.place), row.remark)
        for row in clauses
    )
    return DisplayTable("What is asked for, and where it is", ("Clause", "Asks for", "Where", "What is there"), rows)
