"""Run an `audit.toml`, or audits of a table or of the responses of a study."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any

from evenhand.after.extras import make_extras, require_extras
from evenhand.after.profiles.section import make_profiles
from evenhand.after.profiles.tables import require_counts, require_groupings
from evenhand.after.suppression import run_hidden
from evenhand.audits import DEFAULT, REGISTRY
from evenhand.core.descriptor import StudyResponses, study_analysis
from evenhand.core.progress import RunClock, shown_in_notebook, step, timed
from evenhand.core.provenance import data_record, run_record
from evenhand.core.result import Draft, Result, finalize, finalize_results
from evenhand.core.spec import Spec, name_columns, require_independent_rows, require_table
from evenhand.errors import ConfigError, brief, did_you_mean, error_messages_for
from evenhand.messages.settings import ARGUMENTS, FILE
from evenhand.models.folds import add_models
from evenhand.run.audit import Audit
from evenhand.run.config import AuditConfig, ReportSettings, make_config, make_table, read_config
from evenhand.run.plan import follow, read_plan
from evenhand.stats.pairs.device import name_of
from evenhand.table.engines import name_of as engine_name
from evenhand.table.formats import is_data_file
from evenhand.table.frames import is_frame
from evenhand.table.table import Table


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
        A plan sealed by `evenhand plan`: the audit records whether it was followed, and marks as exploratory
        everything not planned.
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
        raise ConfigError("`seed` must be a whole number, 0 or more; got {seed}.", seed=brief(seed))
    if isinstance(source, str | os.PathLike) and is_data_file(source):
        require_table(str(source), "audit")
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
    source: str | os.PathLike[str] | Table,
    sections: dict[str, Any],
    seed: int | None,
    allow_code: bool,
    clock: RunClock,
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


def _audit_table(table: Table, sections: dict[str, Any], seed: int | None, clock: RunClock) -> Audit:
    if "models" in sections:
        raise ConfigError("a Table takes no `models`; fit them with eh.models.cross_predict and add their scores.")
    if not any(name in REGISTRY for name in sections):
        sections[DEFAULT] = {}
    for name, section in sections.items():
        if name in REGISTRY and isinstance(section, Mapping):
            table, sections[name] = name_columns(table, REGISTRY[name].spec, section)
    config = make_config(sections, None, where=ARGUMENTS, allow_code=True)
    return _run(config, table, {}, seed, clock)


def _run(config: AuditConfig, table: Table, arguments: Mapping[str, Any], seed: int | None, clock: RunClock) -> Audit:
    """Run the audits of a configuration.

    `arguments` are the arguments of the table, needed if models are fitted.
    """
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
            require_independent_rows(table, type(spec))
            return REGISTRY[name].run(table, spec)

    if least is None:
        drafts = {name: run_audit(name, table, spec) for name, spec in config.audits.items()}
    else:
        step("Hiding small counts")
        safe, drafts = run_hidden(table, config.audits, least, run_audit)
        table = safe.table
    with clock.timing("verdicts"):
        results: dict[str, Result] = dict(zip(drafts, finalize_results(list(drafts.values())), strict=True))
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
    """Return the table of an `audit.toml`, including fitted models, without running user code."""
    with error_messages_for(FILE):
        config, arguments = read_config(settings)
        table = make_table(arguments)
        return table if config.models is None else add_models(table, arguments, config.models, step)


def _audit_study(responses: StudyResponses, sections: Mapping[str, Any], seed: int | None) -> Audit:
    """Return the `Audit` of a study's responses."""
    analysis = study_analysis()
    if getattr(responses, "analysis", None) is not analysis:
        kind = type(responses).__name__
        raise ConfigError(
            "audit() takes the path of an audit.toml, a Table or the Responses of a study; got a {kind}.", kind=kind
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
        result = finalize(analysis.run(responses, spec))
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
    """Return the numbers of answers and people before and after exclusions, and the hash of the answers."""
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
