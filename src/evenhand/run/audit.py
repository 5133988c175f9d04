"""`Audit`: the complete output of a run, and saving it."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand._version import __version__
from evenhand.after.counting import counting_result
from evenhand.after.extras import SECTIONS
from evenhand.after.profiles.result import ProfileResult
from evenhand.after.profiles.section import profile_section
from evenhand.after.records import Extra
from evenhand.core.display import Section
from evenhand.core.families import family_sentences
from evenhand.core.files import write_files
from evenhand.core.findings import Finding
from evenhand.core.progress import step, timed
from evenhand.core.records import Gap, Value
from evenhand.core.result import Result, badge, plain_cell
from evenhand.core.thresholds import VERDICTS
from evenhand.errors import ConfigError, EvenhandError, require_choice
from evenhand.messages import Message
from evenhand.messages.formats import json_text, rounded
from evenhand.report.display_names import displayed
from evenhand.report.front import in_order
from evenhand.run.config import AuditConfig
from evenhand.run.saved import read_run, require_contents, require_sentences, result_type
from evenhand.table.frames import build_frame

if TYPE_CHECKING:
    pass

SCHEMA_VERSION = 3


@dataclass(frozen=True, repr=False)
class Audit:
    """All results of a run, with findings and provenance.

    Parameters
    ----------
    config : the settings, including defaults.
    results : the results by audit name.
    data : rows, hash and files of the data.
    run : time and software of the run.
    plan : the sealed plan, whether it was followed, and the differences; None if there is no plan.
    profiles : the requested legal profiles, with their tables.
    extras : gaps over time and verdicts in other populations, if requested.
    """

    config: AuditConfig
    results: dict[str, Result]
    data: dict[str, Any]
    run: dict[str, Any]
    plan: dict[str, Any] | None = None
    profiles: tuple[ProfileResult, ...] = ()
    extras: tuple[Extra, ...] = ()

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all audits, ordered by verdict: not met, undecided, met, without a threshold.

        They are numbered in this order.
        """
        everything = chain.from_iterable(result.findings for result in self.results.values())
        ordered = chain.from_iterable(in_order(everything))
        return tuple(replace(finding, number=f"F{position}") for position, finding in enumerate(ordered, 1))

    @property
    def notes(self) -> dict[str, tuple[Message, ...]]:
        """The notes of all audits, without repetitions."""
        seen: set[Message] = set()
        notes = {}
        for name, result in self.results.items():
            notes[name] = tuple(note for note in result.notes if note not in seen)
            seen.update(result.notes)
        return notes

    @property
    def families(self) -> tuple[Message, ...]:
        """Sentences on the families within which p-values, verdicts and “worse off” hold jointly."""
        rows = chain.from_iterable(result.tables.get("gaps", ()) for result in self.results.values())
        gaps = [gap for gap in rows if isinstance(gap, Gap)]
        return tuple(
            family_sentences(self.findings, gaps, [result.spec.finding_alpha for result in self.results.values()])
        )

    def sections(self) -> dict[str, Section]:
        """Return the sections of the report by name: audits, extras and profiles."""
        parts = {name: replace(result.section(), notes=self.notes[name]) for name, result in self.results.items()}
        counted = counting_result(self.results)
        parts |= {extra.name: SECTIONS[extra.name](extra) for extra in self.extras}
        return parts | {profile.name: profile_section(profile, counted) for profile in self.profiles}

    def __getitem__(self, audit: str) -> Result:
        require_choice("audit", audit, list(self.results))
        return self.results[audit]

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Audit:
        """Load an audit from the folder where `save` wrote it; it renders the same report.

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
            audit = cls._rebuilt(written, run)
            require_sentences(written)
            _ = audit.sections(), audit.families  # they require more than correct types
            return audit
        except EvenhandError:
            raise
        except Exception as error:  # written before a table or a column was added, or by another program
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
            results[name] = result_type(name).from_dict(values, findings)
            _ = results[name].descriptor.messages  # loads the catalogue that translates its sentences
            rows = chain(results[name].findings, *results[name].tables.values())
            for metric in {row.metric for row in rows if isinstance(row, Finding | Value | Gap)}:
                require_choice("metric", metric, results[name].metrics)
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
        """Return `results.json` as text, byte-identical for the same config, data and seed.

        Numbers have 12 significant digits, because processors may differ in the last of about 16 digits.
        """
        return json_text(rounded(self.to_dict()))

    def _recorded(self, written: str | None = None) -> Audit:
        """Return the audit with its numbers rounded as in `results.json`.

        Otherwise the rounding of a printed number could depend on digits that are not in the file.
        """
        text = json.dumps(rounded(self.to_dict()), allow_nan=False) if written is None else written
        return self._rebuilt(json.loads(text), self.run)

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
            The audit; by default the first with the table. If the table is `findings`, limits it to this audit.

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
        results_by_name: dict[str, Result] = {}
        for result in chosen:
            for name in result.record_types():
                results_by_name.setdefault(name, result)
        require_choice("table", table, ["findings", *results_by_name])
        return results_by_name[table].to_frame(table)

    def _findings_frame(self, audit: str | None, backend: str | None) -> Any:
        findings = [finding for finding in self.findings if audit in (None, finding.audit)]
        columns = [name for name in Finding.columns() if name != "coordinates"]
        return build_frame({name: [plain_cell(getattr(f, name)) for f in findings] for name in columns}, backend)

    def plot(self, chart: str | None = None, *, audit: str | None = None, grouping: str | None = None) -> Any:
        """Return a chart of an audit, by default the main chart of the first audit; see `Result.plot`."""
        return self[next(iter(self.results)) if audit is None else audit].plot(chart, grouping=grouping)

    def to_html(self) -> str:
        """Return the report as one self-contained page."""
        from evenhand.report.page import render

        return render(displayed(self._recorded()))

    def save(self, folder: str | os.PathLike[str], formats: str | Sequence[str] = "html") -> dict[str, Path]:
        """Write results.json, run.json and the report into a folder, either all files or none.

        Return their paths.

        Parameters
        ----------
        folder
            The target; its other files stay as they are.
        formats
            One or several formats of the report: card (model cards), csv, datasheet, html, junit, md, pdf, png, svg,
            xlsx.
        """
        from evenhand.report.formats import make_files

        with timed() as clock, clock.timing("report"):
            step("Writing the report")
            written = self.to_json()
            contents = {
                **make_files(self._recorded(written), [formats] if isinstance(formats, str) else formats),
                "results.json": written,
            }
            encoded = {name: text.encode() if isinstance(text, str) else text for name, text in contents.items()}
            sums = {name: hashlib.sha256(content).hexdigest() for name, content in encoded.items()}
        spent = [record for record in clock.records() if record["section"] == "report"]
        seconds = {**self.run["seconds"], "report": round(sum(record["seconds"] for record in spent), 3)}
        run = {**self.run, "seconds": seconds, "steps": [*self.run.get("steps", ()), *spent], "sha256": sums}
        return write_files(folder, {**encoded, "run.json": json_text(run)})
