"""`Audit`: everything one run produced, and how it is saved."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from evenhand._version import __version__
from evenhand.after.counting import counting_result
from evenhand.after.extras import SECTIONS
from evenhand.after.profiles.result import ProfileResult
from evenhand.after.profiles.section import profile_section
from evenhand.after.records import Extra
from evenhand.audits import REGISTRY
from evenhand.core.descriptor import StudyResponses, study_analysis
from evenhand.core.display import Section
from evenhand.core.families import in_words
from evenhand.core.files import write_files
from evenhand.core.findings import Finding
from evenhand.core.progress import step, timed
from evenhand.core.records import Gap
from evenhand.core.result import Result, badge, plain_cell
from evenhand.core.thresholds import VERDICTS
from evenhand.errors import ConfigError, EvenhandError, brief, did_you_mean, error_messages_for, require_choice
from evenhand.messages import Message
from evenhand.messages.formats import json_text, rounded
from evenhand.report.front import in_order
from evenhand.run.config import AuditConfig
from evenhand.run.saved import read_run, require_contents
from evenhand.table.frames import build_frame

SCHEMA_VERSION = 3


@dataclass(frozen=True, repr=False)
class Audit:
    """All results of one run, with their findings and provenance.

    Parameters
    ----------
    config : what was asked, defaults filled in.
    results : the results by audit name.
    data : rows, hash and files of the data.
    run : when and with what it ran.
    plan : the plan that was sealed beforehand, whether it was followed, and what differs; None where there is none.
    profiles : the legal profiles that were asked for, with their tables.
    extras : gaps over time, and verdicts in other populations, where they were requested.
    """

    config: AuditConfig
    results: dict[str, Result]
    data: dict[str, Any]
    run: dict[str, Any]
    plan: dict[str, Any] | None = None
    profiles: tuple[ProfileResult, ...] = ()
    extras: tuple[Extra, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all audits, in the order of every format: not met, undecided, met, without a threshold."""
        everything = chain.from_iterable(result.findings for result in self.results.values())
        return tuple(chain.from_iterable(in_order(everything)))

    @property
    def notes(self) -> dict[str, tuple[Message, ...]]:
        """The remarks of each audit that no audit before it has made."""
        said: set[Message] = set()
        notes = {}
        for name, result in self.results.items():
            notes[name] = tuple(note for note in result.notes if note not in said)
            said.update(result.notes)
        return notes

    @property
    def families(self) -> tuple[Message, ...]:
        """What p-values, verdicts and “worse off” hold for together, in sentences."""
        rows = chain.from_iterable(result.tables.get("gaps", ()) for result in self.results.values())
        gaps = [gap for gap in rows if isinstance(gap, Gap)]
        return tuple(in_words(self.findings, gaps, [result.spec.finding_alpha for result in self.results.values()]))

    def sections(self) -> dict[str, Section]:
        """Return the parts of the report by name: the audits, then the profiles."""
        parts = {name: replace(result.section(), notes=self.notes[name]) for name, result in self.results.items()}
        counted = counting_result(self.results)
        parts |= {extra.name: SECTIONS[extra.name](extra) for extra in self.extras}
        return parts | {profile.name: profile_section(profile, counted) for profile in self.profiles}

    def __getitem__(self, audit: str) -> Result:
        require_choice("audit", audit, list(self.results))
        return self.results[audit]

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Audit:
        """Return the audit that `save` wrote into a folder; it renders the same report.

        Examples
        --------
        >>> import tempfile, evenhand as eh
        >>> data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
        >>> audit = eh.audit(eh.Table(data, groups="sex", predictions="hired"), parity={})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = audit.save(folder)
        ...     eh.Audit.load(folder).to_json() == audit.to_json()
        True
        """
        written, run = read_run(Path(folder))
        if written.get("schema") != SCHEMA_VERSION:
            raise ConfigError(
                "'{folder}' holds results of format {get!r}; this version reads {SCHEMA_VERSION}.",
                folder=folder,
                get=written.get("schema"),
                SCHEMA_VERSION=SCHEMA_VERSION,
            )
        try:
            require_contents(written)
            return cls._rebuilt(written, run)
        except EvenhandError:
            raise
        except Exception as error:  # written before a table or a column was added, or by another hand
            fault = " ".join(str(error).split("\n")[:2]) or type(error).__name__
            raise ConfigError(
                "the results in '{folder}' are not whole ({fault}), or of another version of evenhand; run the "
                "audit again.",
                folder=folder,
                fault=fault,
            ) from None

    @classmethod
    def _rebuilt(cls, written: dict[str, Any], run: dict[str, Any]) -> Audit:
        results = {}
        if not written["audits"] or not {finding["audit"] for finding in written["findings"]} <= set(written["audits"]):
            raise ValueError("an audit is missing")
        for name, values in written["audits"].items():
            findings = [finding for finding in written["findings"] if finding["audit"] == name]
            results[name] = _result_type(name).from_dict(values, findings)
            for finding in findings:
                require_choice("metric", finding["metric"], results[name].metrics)
        specs = {name: result.spec for name, result in results.items()}
        config = AuditConfig.recorded(written["config"], specs)
        profiles = tuple(map(ProfileResult.from_dict, written["profiles"]))
        extras = tuple(map(Extra.from_dict, written["extras"]))
        return cls(config, results, written["data"], run, written["plan"], profiles, extras)

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of `results.json`."""
        return {
            "evenhand": __version__,
            "schema": SCHEMA_VERSION,
            "config": self.config.as_dict(),
            "data": self.data,
            "plan": self.plan,
            "findings": [finding.to_dict() for finding in self.findings],
            "audits": {name: result.to_dict() for name, result in self.results.items()},
            "profiles": [profile.to_dict() for profile in self.profiles],
            "extras": [extra.to_dict() for extra in self.extras],
        }

    def to_json(self) -> str:
        """Return `results.json` as text: the same bytes for the same config, data and seed.

        Numbers have 12 significant digits: processors may differ in the last bits of the sixteen or so.
        """
        return json_text(rounded(self.to_dict()))

    def _recorded(self, written: str | None = None) -> Audit:
        """Return the audit with the numbers that `results.json` holds, so that a report shows what is stored.

        A number that lies half-way between two as they are printed would else depend on digits that nobody can check.
        """
        return self._rebuilt(json.loads(self.to_json() if written is None else written), self.run)

    def summary(self) -> str:
        """Return the findings of all audits as plain text."""
        return "\n\n".join(result.summary() for result in self.results.values())

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Audit: {', '.join(self.results)}; {len(self.findings)} findings>"

    def _repr_html_(self) -> str:
        counts = Counter(finding.verdict for finding in self.findings)
        verdicts = " ".join(f"{counts[verdict]} {badge(verdict)}" for verdict in VERDICTS[:3] if counts[verdict])
        return f"<p>{verdicts}</p>" + "".join(result._repr_html_() for result in self.results.values())

    def to_frame(self, table: str = "findings", *, audit: str | None = None) -> Any:
        """Return the findings of all audits, or one table of one audit, as a data frame.

        Parameters
        ----------
        table
            `findings`, or a table of an audit such as `gaps`.
        audit
            Which audit; by default the first that has the table. Its findings only, where the table is `findings`.

        Examples
        --------
        >>> import evenhand as eh
        >>> data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
        >>> audit = eh.audit(eh.Table(data, groups="sex", predictions="hired"))
        >>> len(audit.to_frame()) == len(audit.findings)
        True
        """
        chosen = list(self.results.values()) if audit is None else [self[audit]]
        if table == "findings":
            backend = next((result.backend for result in chosen if result.backend), None)
            return self._findings_frame(audit, backend)
        known: dict[str, Result] = {}
        for result in chosen:
            for name in result.record_types():
                known.setdefault(name, result)
        require_choice("table", table, ["findings", *known])
        return known[table].to_frame(table)

    def _findings_frame(self, audit: str | None, backend: str | None) -> Any:
        findings = [finding for finding in self.findings if audit in (None, finding.audit)]
        columns = [name for name in Finding.columns() if name != "coordinates"]
        return build_frame({name: [plain_cell(getattr(f, name)) for f in findings] for name in columns}, backend)

    def plot(self, chart: str | None = None, *, audit: str | None = None, grouping: str | None = None) -> Any:
        """Return a chart of an audit, by default the main one of the first; see `Result.plot`."""
        return self[next(iter(self.results)) if audit is None else audit].plot(chart, grouping=grouping)

    def to_html(self) -> str:
        """Return the report as one self-contained page."""
        from evenhand.report.page import render

        return render(self._recorded())

    def save(self, folder: str | os.PathLike[str], formats: Sequence[str] = ("html",)) -> dict[str, Path]:
        """Write results.json, run.json and the report into a folder, all or none of them; return their paths.

        Parameters
        ----------
        folder
            Where to; what else it holds stays as it is.
        formats
            Formats of the report: card (model cards), csv, datasheet, html, junit, md, pdf, png, svg, xlsx.
        """
        from evenhand.report.formats import make_files

        with timed() as clock, clock.timing("report"):
            step("Writing the report")
            written = self.to_json()
            contents = {**make_files(self._recorded(written), formats), "results.json": written}
            held = {name: text.encode() if isinstance(text, str) else text for name, text in contents.items()}
            sums = {name: hashlib.sha256(content).hexdigest() for name, content in held.items()}
        spent = [record for record in clock.records() if record["section"] == "report"]
        seconds = {**self.run["seconds"], "report": round(sum(record["seconds"] for record in spent), 3)}
        run = {**self.run, "seconds": seconds, "steps": [*self.run.get("steps", ()), *spent], "sha256": sums}
        return write_files(folder, {**held, "run.json": json_text(run)})


@shown_in_notebook()
def audit(
    source: str | os.PathLike[str] | Table | StudyResponses,
    *,
    seed: int | None = None,
    allow_code: bool = False,
    plan: str | os.PathLike[str] | None = None,
    **sections: Any,
) -> Audit:
    """Run an `audit.toml`, or audits of a table given as keyword arguments.

    Parameters
    ----------
    source
        The path of an `audit.toml`, or a `Table`; or the `Responses` of a human study, to analyse it with a report.
    seed
        Overrides the seed of every audit and of the models.
    allow_code
        Whether `audit.toml` may name Python functions to import.
    plan
        A plan that was sealed by `evenhand plan`: the audit says whether it was followed, and marks as exploratory
        whatever it did not foresee.
    **sections
        For a table: the sections of `audit.toml` as mappings, an installed audit by its name, by default
        ``parity={}``, and ``thresholds=[{"metric": "selection_rate", "min": 0.8}]``. For responses: ``study={}``, with
        the arguments of `eh.study.analyze` or the `analysis` of a `study.toml`.

    Examples
    --------
    >>> import evenhand as eh
    >>> data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
    >>> table = eh.Table(data, groups="sex", predictions="hired")
    >>> eh.audit(table, parity={"metrics": "selection_rate"}).findings[0].verdict
    'no_threshold'
    """
    if seed is not None and not (type(seed) is int and seed >= 0):
        raise ConfigError(
            "`seed` must be a whole number, 0 or more; got {seed}.",
            seed=brief(seed),
        )
    if not isinstance(source, str | os.PathLike | Table):
        if is_frame(source) or isinstance(source, Mapping):
            require_table(source, "audit")
        if plan is not None:
            raise ConfigError("a study takes no `plan`; its study.toml is its plan.")
        return _audit_study(source, sections, seed)
    sealed = None if plan is None else read_plan(plan)
    with timed() as clock:
        done = _audit_rows(source, sections, seed, allow_code, clock)
    return done if sealed is None else follow(done, sealed)


def _audit_rows(
    source: str | os.PathLike[str] | Table, sections: dict[str, Any], seed: int | None, allow_code: bool, clock: Clock
) -> Audit:
    """Run an `audit.toml`, or the audits of a table."""
    if isinstance(source, Table):
        return _audit_table(source, sections, seed, clock)
    if sections:
        raise ConfigError("an audit.toml takes no further sections; change the file, or give a Table.")
    with error_messages_for(FILE):
        config, arguments = read_config(source, allow_code=allow_code)
        with clock.timing("read"):
            step(f"Reading {config.source or 'invented data'}")
            table = make_table(arguments)
        return _run(config, table, arguments, seed, clock)


def _audit_table(table: Table, sections: dict[str, Any], seed: int | None, clock: Clock) -> Audit:
    if "models" in sections:
        raise ConfigError("a Table takes no `models`; fit them with eh.models.cross_predict and add their scores.")
    if not any(name in REGISTRY for name in sections):
        sections[next(iter(REGISTRY))] = {}
    for name, section in sections.items():
        if name in REGISTRY and isinstance(section, Mapping):
            table, sections[name] = name_columns(table, REGISTRY[name].spec, section)
    config = make_config(sections, None, where="the arguments of audit()", allow_code=True)
    return _run(config, table, {}, seed, clock)


def _run(config: AuditConfig, table: Table, arguments: Mapping[str, Any], seed: int | None, clock: Clock) -> Audit:
    """Run the audits of a configuration; `arguments` are those of the table, for models that are fitted first."""
    require_counts(config.report.profile, config.audits)
    require_groupings(config.report.profile_groupings, table.groupings)
    require_extras(config, table)
    if seed is not None:
        reseeded = {name: spec.model_copy(update={"seed": seed}) for name, spec in config.audits.items()}
        models = config.models and config.models.model_copy(update={"seed": seed})
        config = config.model_copy(update={"audits": reseeded, "models": models})
    if config.models is not None:
        with clock.timing("models"):
            table = add_models(table, arguments, config.models, step)
    config = config.model_copy(update={"data": table.settings()})
    least, safe = config.report.suppress_below, None

    def run_audit(name: str, table: Table, spec: Spec) -> Draft[Any]:
        with clock.timing(name):
            return REGISTRY[name].run(table, spec)

    if least is None:
        drafts = {name: run_audit(name, table, spec) for name, spec in config.audits.items()}
    else:
        step("Hiding small counts")
        safe, drafts = run_hidden(table, config.audits, least, run_audit)
        table = safe.table
    with clock.timing("verdicts"):
        results: dict[str, Result] = dict(zip(drafts, settle(list(drafts.values())), strict=True))
        results = results if safe is None else safe.relabelled(results)
        profiles = make_profiles(config, results, table)
        profiles = profiles if safe is None else safe.profiles(profiles)
        extras = make_extras(config, results, table, safe)
        extras = extras if safe is None else safe.extras(extras)
    with clock.timing("hash"):
        record = data_record(table) if safe is None else safe.record()
    devices = (getattr(spec, "device", None) for spec in config.audits.values())
    device = name_of(next(filter(None, devices), "cpu"))
    run = run_record(clock, device, engine_name(table.source.frame))
    return Audit(config, results, record, run, profiles=profiles, extras=extras)


def read_table(settings: str | os.PathLike[str]) -> Table:
    """Return the table of an `audit.toml`, with the models that it fits; no code of the user's is run."""
    with error_messages_for(FILE):
        config, arguments = read_config(settings)
        table = make_table(arguments)
        return table if config.models is None else add_models(table, arguments, config.models, step)


def _audit_study(responses: StudyResponses, sections: Mapping[str, Any], seed: int | None) -> Audit:
    """Analyse the responses of a study and return what `Audit.save` can write."""
    analysis = study_analysis()
    if getattr(responses, "analysis", None) is not analysis:
        kind = type(responses).__name__
        raise ConfigError(
            "audit() takes the path of an audit.toml, a Table or the Responses of a study; got a {kind}.",
            kind=kind,
        )
    allowed = ("study", "thresholds", "report")
    for name in sections:
        if name not in allowed:
            hint = did_you_mean(name, allowed)
            raise ConfigError("responses take no section {name!r}; {hint}", name=name, hint=hint)
    spec = _analysis_spec(sections.get("study", {}), sections.get("thresholds", ()), seed)
    about = {"title": "Human study", **sections.get("report", {})}
    report = ReportSettings.parse(about, "`report` in the arguments of audit()")
    require_counts(report.profile, {})
    if report.suppress_below is not None:
        raise ConfigError("`suppress_below` hides small counts of a table's audits, not of a study; leave it out.")
    with timed() as clock, clock.timing("study"):
        result = settled(analysis.run(responses, spec))
    data = {"kind": responses.kind, "points": responses.points, "conditions": list(responses.conditions)}
    config = AuditConfig(source=None, data=data, audits={"study": spec}, report=report)
    results: dict[str, Result] = {"study": result}
    record, run_of = _study_record(responses, result), run_record(clock)
    return Audit(config, results, record, run_of, profiles=make_profiles(config, results, None))


def _analysis_spec(settings: Spec | Mapping[str, Any], thresholds: Iterable[object], seed: int | None) -> Spec:
    values = settings.model_dump() if isinstance(settings, Spec) else dict(settings)
    values["thresholds"] = [*values.get("thresholds", ()), *thresholds]
    if seed is not None:
        values["seed"] = seed
    return study_analysis().spec.parse(values, "`study` in the arguments of audit()")


def _study_record(responses: StudyResponses, result: Any) -> dict[str, Any]:
    """Return answers and people, before and after the exclusions, and what identifies the answers."""
    from evenhand.core.csv_text import write_csv

    columns = responses.to_columns()
    text = write_csv({name: columns[name] for name in sorted(columns)})
    answers = len(responses.person)
    return {
        "rows": answers,
        "rows_used": result.answers,
        "rows_dropped": answers - result.answers,
        "people": len(responses.people["participant"]),
        "people_used": result.people,
        "groups": {},
        "hash": hashlib.sha256(text.encode()).hexdigest(),
        "files": [],
    }


def _result_type(name: str) -> type[Result]:
    if name == "study":
        return study_analysis().result
    require_choice("audit", name, list(REGISTRY))
    return REGISTRY[name].result
