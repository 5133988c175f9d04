"""`Result`: the outcome of an audit, the source of its tables, text, frames, JSON and HTML."""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from html import escape
from itertools import count
from typing import Any, ClassVar, Generic, Self, TypeVar

from evenhand.charts import Picture, to_svg
from evenhand.core.by_group import by_group
from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.display import DisplayTable, Figure, Section
from evenhand.core.families import adjust_tables, check_claims, family_sentences, stated_gaps
from evenhand.core.findings import VERDICT_WORDS, Claim, Finding, FindingMaker
from evenhand.core.metrics import Metric
from evenhand.core.records import Gap, LeftOut, Record, Reveals, read_tables, written_tables
from evenhand.core.spec import Spec
from evenhand.core.thresholds import VERDICTS, Verdict
from evenhand.errors import ConfigError, brief, did_you_mean, problem, require_choice
from evenhand.errors import count as count_of
from evenhand.messages import Catalogue, Message
from evenhand.table.frames import build_frame

_USUAL = {"kind": "difference", "against": "worst_pair"}
"""The defaults of `get` if several gaps match, as in thresholds."""

_COMMON = ("spec", "findings", "left_out", "notes", "backend")


@dataclass(frozen=True, repr=False, kw_only=True)
class Result:
    """The outcome of one audit.

    A field with a tuple of records is a table. All other fields of an audit's own contain plain values. A result
    contains no rows of the data, so it can be pickled, saved and shared.

    Parameters
    ----------
    spec : the settings.
    findings : the findings, as sentences with their numbers.
    left_out : the people and rows left out, with the reasons.
    notes : the remarks for the reader.
    backend : the data-frame library that `to_frame` uses.
    """

    descriptor: ClassVar[AuditDescriptor]
    audit: ClassVar[str]
    title: ClassVar[str]
    question: ClassVar[str]
    main_table: ClassVar[str] = "gaps"
    places: ClassVar[tuple[str, ...]] = ()
    """The audit's own columns that are coordinates; its other columns are results."""
    found_places: ClassVar[tuple[str, ...]] = ()
    """The coordinates determined by the choice of a worst pair, which therefore do not identify it."""
    reveals: ClassVar[Mapping[str, Reveals]] = {}
    """The declarations of the plain fields, as of columns: what they reveal about the number of people."""

    spec: Spec
    findings: tuple[Finding, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[Message, ...]
    backend: str | None = None

    def __init_subclass__(cls) -> None:
        if "descriptor" in vars(cls):
            cls.audit, cls.title = cls.descriptor.name, cls.descriptor.title
            cls.question = cls.descriptor.question

    # Tables -----------------------------------------------------------------------------------------------------------

    @classmethod
    def record_types(cls) -> dict[str, type[Record]]:
        """Return the record type of each table, the audit's own tables first."""
        return dict(_record_types(cls))  # type: ignore[arg-type]  # a class can be hashed

    @classmethod
    def plain_fields(cls) -> tuple[str, ...]:
        """Return the audit's own fields that are not tables."""
        tables = cls.record_types()
        return tuple(item.name for item in fields(cls) if item.name not in (*_COMMON, *tables))

    @property
    def tables(self) -> dict[str, tuple[Record, ...]]:
        """The tables by name."""
        return {name: getattr(self, name) for name in self.record_types()}

    def rows(self, table: str, **where: object) -> tuple[Any, ...]:
        """Return the records of a table with the wanted values; None selects nulls, and a text can select a status.

        Examples
        --------
        >>> import evenhand as eh
        >>> data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
        >>> result = eh.parity(eh.Table(data, groups="sex", predictions="hired"))
        >>> [record.group for record in result.rows("values", metric="selection_rate")]
        ['F', 'M']
        """
        kind = self._record_type(table)
        metrics, where = self._translate_metric_names(where)
        for name in where:
            if name not in kind.columns():
                hint = did_you_mean(name, kind.columns())
                raise ConfigError(
                    "the table {table!r} has no column {name!r}; {hint}", table=table, name=name, hint=hint
                )
        if not all(value is None or isinstance(value, str | float | int) for value in where.values()):
            return ()  # no column contains other types
        records: Iterable[Record] = getattr(self, table)
        if metrics is not None:
            records = [r for r in records if getattr(r, "metric", None) in metrics]
        for name, value in where.items():
            records = [r for r in records if plain_cell(getattr(r, name)) == value]
        return tuple(records)

    def _translate_metric_names(self, where: dict[str, object]) -> tuple[tuple[str, ...] | None, dict[str, object]]:
        """Return the metrics and columns that another package's name stands for."""
        other = self.spec.other_names.get(str(where.get("metric")))
        if other is None or where["metric"] in self.metrics:
            return None, where
        columns = {name: value for name, value in where.items() if name != "metric"}
        return other.metrics, {**columns, **other.where(str(where["metric"]))}

    def get(self, table: str, **where: object) -> Any:
        """Return the only record of a table with the wanted values.

        If several records match, unnamed columns have the defaults of thresholds: all people together, the difference,
        and the worst pair of groups.

        Raises
        ------
        ConfigError
            If no record matches, or several do; the message names the columns to add.
        """
        fitting = self.rows(table, **where)
        pooled = dict.fromkeys(self.spec.threshold_type().pooled)
        for name, usual in (pooled | _USUAL).items():
            if len(fitting) > 1 and name not in where and name in type(fitting[0]).columns():
                fitting = tuple(record for record in fitting if getattr(record, name) == usual) or fitting
        if len(fitting) == 1:
            return fitting[0]
        raise ConfigError(self._why_not_one(table, fitting, where))

    def _why_not_one(self, table: str, fitting: Sequence[Record], where: Mapping[str, object]) -> Message:
        """Return the reason why no single record matches: several do, or a value does not occur."""
        criteria = tuple(f"{name}={brief(value)}" for name, value in where.items()) or ("no columns named",)
        if fitting:
            differ = [name for name in type(fitting[0]).columns() if len({getattr(r, name) for r in fitting}) > 1]
            more = tuple([name for name in differ if name not in where][:6])
            return problem(
                "{number} records of {table!r} fit {asked}; name more of its columns, such as {more}.",
                number=len(fitting),
                table=table,
                asked=criteria,
                more=more,
            )
        for name, value in where.items():
            values = list(dict.fromkeys(str(getattr(record, name)) for record in self.tables[table]))
            if str(value) not in values:
                hint = did_you_mean(value, values)
                return problem("`{name}` got {value}; {hint}", name=name, value=brief(value), hint=hint)
        return problem("no record of {table!r} fits {asked}.", table=table, asked=criteria)

    def to_frame(self, table: str | None = None) -> Any:
        """Return a table as a data frame of the data's own library; an empty frame keeps its columns."""
        name = self.main_table if table is None else table
        columns = self._record_type(name).columns()
        records = self.tables[name]
        return build_frame(
            {column: [plain_cell(getattr(record, column)) for record in records] for column in columns}, self.backend
        )

    def table(self, *metrics: str, model: str | None = None, grouping: str | None = None) -> DisplayTable:
        """Return the values with intervals in a compact table, with groups as rows and metrics as columns.

        A star marks a value that is not compared, for example because the group is small. `to_frame("values")` returns
        the same values as numbers.

        Parameters
        ----------
        *metrics
            The metrics; by default all.
        model, grouping
            Only this model or grouping.

        Examples
        --------
        >>> import evenhand as eh
        >>> data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
        >>> print(eh.parity(eh.Table(data, groups="sex", predictions="hired"), metrics="selection_rate").table())
        Parity: values by group, with 95% intervals
        <BLANKLINE>
        Group   n  Selection rate
        F      50  40.0% (27.6 to 53.8)
        M      50  60.0% (46.2 to 72.4)
        """
        return by_group(self, metrics, model, grouping)

    def __dir__(self) -> list[str]:
        """Return the names for users: the fields, and the methods that read them."""
        methods = ("charts", "get", "groupings", "metrics", "plot", "rows", "summary", "table", "to_dict", "to_frame")
        return sorted([*(item.name for item in fields(self)), *methods])

    def _record_type(self, table: str) -> type[Record]:
        types = self.record_types()
        require_choice("table", table, list(types))
        return types[table]

    @property
    def groupings(self) -> list[str]:
        """The groupings that occur, in order."""
        records = (record for table in self.tables.values() for record in table)
        names = (getattr(record, "grouping", None) for record in records)
        return list(dict.fromkeys(name for name in names if name is not None))

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics that can occur in the tables."""
        return self.spec.known_metrics()

    # Text, charts, report ---------------------------------------------------------------------------------------------

    def summary(self) -> str:
        """Return the findings as plain text: counts of limits met and differences established, then each finding."""
        lines = [f"{self.title}: {answer_line(self.findings)}", ""]
        for finding in sorted(self.findings, key=lambda finding: VERDICTS.index(finding.verdict)):
            verdict = "" if finding.verdict == "no_threshold" else f" [{finding.judgement}]"
            lines.append(f"- {finding.headline}{verdict}")
            lines += [f"  {layer}" for layer in (finding.detail, finding.reason) if layer is not None]
        lines += map(str, self.families)
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines)

    @property
    def families(self) -> tuple[Message, ...]:
        """Sentences on the families that p-values and verdicts are adjusted for."""
        gaps = [record for record in self.tables.get("gaps", ()) if isinstance(record, Gap)]
        return tuple(family_sentences(self.findings, gaps, [self.spec.finding_alpha]))

    def plot(self, chart: str | None = None, *, grouping: str | None = None) -> Picture:
        """Return a chart as a `Picture`, which a notebook displays and `save` writes.

        Parameters
        ----------
        chart
            The name of the chart; by default the audit's main chart. `charts()` lists them.
        grouping
            The grouping to draw; by default the first.
        """
        drawers = self.descriptor.charts
        if not drawers:
            raise ConfigError("the {audit} audit has no charts.", audit=self.audit)
        name = next(iter(drawers)) if chart is None else chart
        require_choice("chart", name, list(drawers))
        if grouping is not None:
            require_choice("grouping", grouping, self.groupings)
        panels = drawers[name](self, grouping or next(iter(self.groupings), None))
        if not panels:
            raise ConfigError(
                "there is nothing to draw in the chart {name!r}: the result has no numbers for it.", name=name
            )
        return Picture("" if len(panels) == 1 else name.replace("_", " ").capitalize(), tuple(panels))

    def charts(self) -> list[str]:
        """Return the names of the charts that `plot` can draw."""
        return list(self.descriptor.charts)

    def section(self) -> Section:
        """Return the result's section of a report."""
        maker = self.descriptor.section
        reported = {finding.metric for finding in self.findings}
        caveats = ((metric.title, metric.caveat) for name, metric in self.metrics.items() if name in reported)
        return Section(
            title=self.title,
            question=self.question,
            parts=tuple(maker.parts(self)),
            methods=tuple(maker.methods(self)),
            notes=self.notes,
            caveats=tuple((title, caveat) for title, caveat in caveats if caveat),
        )

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} ({len(records):,})" for name, records in self.tables.items())
        return f"<{type(self).__name__}: {len(self.findings)} findings; tables {tables}>"

    def _repr_html_(self) -> str:
        parts = self.section().parts
        tables = "".join(replace(part, folded=True).to_html() for part in parts if isinstance(part, DisplayTable))
        figure = next((_figure_html(part) for part in parts if isinstance(part, Figure) and part.charts), "")
        notes = "".join(f"<p>Note: {escape(str(note))}</p>" for note in self.notes)
        head = f"<h3>{escape(self.title)}</h3><p>{escape(self.question)}</p>"
        return f"{head}{findings_html(self.findings)}{figure}{notes}{tables}"

    # Records ----------------------------------------------------------------------------------------------------------

    @property
    def shows_individuals(self) -> bool:
        """Whether tables about individual people are published."""
        return bool(getattr(self.spec, "individuals", False))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values for JSON; records about individuals only if the settings ask for them."""
        types = self.record_types()
        hidden = {name for name, kind in types.items() if kind.individual and not self.shows_individuals}
        return {
            "spec": self.spec.model_dump(mode="json"),
            **written_tables({name: () if name in hidden else records for name, records in self.tables.items()}),
            **{name: getattr(self, name) for name in self.plain_fields()},
            "notes": [note.to_dict() for note in self.notes],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], findings: Sequence[Mapping[str, Any]] = ()) -> Self:
        """Return the result written by `to_dict`.

        Parameters
        ----------
        values
            The audit's section of `results.json`.
        findings
            The audit's findings in `results.json`.
        """
        kinds = cls.record_types()
        tables: dict[str, Any] = read_tables({name: values[name] for name in kinds}, kinds)
        plain: dict[str, Any] = {name: _frozen(values[name]) for name in cls.plain_fields()}
        return cls(
            spec=cls.descriptor.spec.from_json(values["spec"]),
            findings=tuple(map(Finding.from_dict, findings)),
            notes=tuple(map(Message.from_dict, values["notes"])),
            **tables,
            **plain,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "spec": self.spec.without_code()}


def plain_cell(value: object) -> object:
    """Return a column's value for a data frame, with a message as its English text."""
    return value.text if isinstance(value, Message) else value


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


@cache
def _record_types(result: type[Result]) -> Mapping[str, type[Record]]:
    """Return the tables of a result type; cached, because reading the annotations takes two milliseconds."""
    hints = typing.get_type_hints(result)
    types = {item.name: kind for item in fields(result) if (kind := _record_type(hints[item.name])) is not None}
    return dict(sorted(types.items(), key=lambda entry: entry[0] == "left_out"))


def _record_type(annotation: object) -> type[Record] | None:
    """Return the record type of a table field, or None for other fields."""
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is not tuple or not isinstance(arguments[0], type):
        return None
    is_table = issubclass(arguments[0], Record) and arguments[0] is not Finding
    return arguments[0] if is_table else None


# In a notebook, which needs inline styles ----------------------------------------------------------------------------

_SHOWN = 12  # unfolded findings; all others are folded
_PANELS = 4
_figures = count(1)
_BADGES: dict[Verdict, tuple[str, str, str]] = {
    "does_not_meet": ("#8f1d14", "#fbe6e3", "✕"),
    "not_confirmed": ("#6b4e00", "#fdf3d0", "!"),
    "insufficient_evidence": ("#6b4e00", "#fdf3d0", "?"),
    "meets": ("#14532d", "#e2f4e7", "✓"),
}


def badge(verdict: Verdict, words: str = "") -> str:
    """Return a verdict as an HTML badge with sign, words and colour, or an empty text without a verdict."""
    if verdict not in _BADGES:
        return ""
    ink, ground, sign = _BADGES[verdict]
    style = f"color:{ink};background:{ground};border-radius:.35em;padding:.1em .5em;font-weight:600;white-space:nowrap"
    return f'<span style="{style}">{sign} {escape(words or VERDICT_WORDS[verdict])}</span> '


def findings_html(findings: Sequence[Finding]) -> str:
    """Return findings as an HTML list with folded details; after the first dozen, findings are folded, too."""
    items = [
        f"<li>{badge(finding.verdict, finding.judgement)}{escape(str(finding.headline))}"
        "<details><summary>How sure</summary>"
        f"{escape(' '.join(str(part) for part in (finding.detail, finding.reason) if part))}</details></li>"
        for finding in findings
    ]
    rest = items[_SHOWN:]
    more = f"<details><summary>{len(rest)} more</summary><ul>{''.join(rest)}</ul></details>" if rest else ""
    return f"<ul>{''.join(items[:_SHOWN])}</ul>{more}"


def answer_line(findings: Sequence[Finding]) -> str:
    """Return a sentence on the numbers of limits met and of established differences without a limit.

    Examples
    --------
    >>> answer_line([])
    'nothing could be compared.'
    """
    counts = Counter(finding.verdict for finding in findings)
    judged = len(findings) - counts["no_threshold"]
    parts = [f"{counts[verdict]} of {judged} {words}" for verdict, words in _COUNTED.items() if counts[verdict]]
    measured = Counter(finding.significance for finding in findings if finding.verdict == "no_threshold")
    clear = measured["directed"] + measured["significant"]
    if tested := clear + measured["not_significant"]:
        parts.append(f"{clear} of {count_of(tested, 'tested finding')} without a limit beyond chance")
    elif findings and not judged:
        parts.append(f"{count_of(len(findings), 'finding')}, none of them tested")
    return f"{'; '.join(parts) or 'nothing could be compared'}."


_COUNTED: dict[Verdict, str] = {
    "does_not_meet": "limits not met",
    "not_confirmed": "limits broken alone, not confirmed",
    "insufficient_evidence": "limits open",
    "meets": "limits met",
}


def _figure_html(figure: Figure) -> str:
    charts = "".join(
        to_svg(chart, figure.title, figure.description, name=f"evenhand-{next(_figures)}")
        for chart in figure.charts[:_PANELS]
    )
    more = f" The first {_PANELS} of {len(figure.charts)} panels." if len(figure.charts) > _PANELS else ""
    return f"<figure>{charts}<figcaption>{escape(figure.title)}. {escape(figure.caption)}{more}</figcaption></figure>"


# Runs -----------------------------------------------------------------------------------------------------------------

R = TypeVar("R", bound=Result)


@dataclass(frozen=True, kw_only=True)
class Draft(Generic[R]):
    """The result of one audit before the run is complete: without findings, and with unadjusted gaps.

    Parameters
    ----------
    result : the result, without findings.
    claims : the statements to test or judge.
    own : the audit's own catalogue of sentences.
    bounds : the settings to judge claims by, if they differ from the result's settings.
    notes : the function that returns further remarks, which depend on the findings.
    """

    result: R
    claims: Sequence[Claim]
    own: Catalogue
    bounds: Spec | None = None
    notes: Callable[[R], Iterable[Message]] = lambda _: ()


def finalize_results(drafts: Sequence[Draft[Any]]) -> list[Any]:
    """Return the results of a run, with findings, verdicts and "worse off" adjusted over all its audits."""
    makers = [FindingMaker(draft.bounds or draft.result.spec, draft.own) for draft in drafts]
    checks = [maker.checks(draft.claims) for maker, draft in zip(makers, drafts, strict=True)]
    of_run = iter(check_claims([check for audit_checks in checks for check in audit_checks]))
    outcomes = [[next(of_run) for _ in audit_checks] for audit_checks in checks]
    tables = adjust_tables(
        [draft.result.gaps for draft in drafts],
        [1.0 - maker.spec.confidence for maker in makers],
        [
            stated_gaps(draft.result.gaps, draft.claims, audit_checks, found)
            for draft, audit_checks, found in zip(drafts, checks, outcomes, strict=True)
        ],
    )
    results = []
    for draft, maker, audit_checks, found, gaps in zip(drafts, makers, checks, outcomes, tables, strict=True):
        findings = maker.build_findings(draft.claims, audit_checks, found)
        result = replace(draft.result, findings=findings, gaps=gaps)
        results.append(replace(result, notes=tuple(dict.fromkeys((*result.notes, *draft.notes(result))))))
    return results


def finalize(draft: Draft[R]) -> R:
    """Return the result of an audit that runs alone."""
    result: R = finalize_results([draft])[0]
    return result
