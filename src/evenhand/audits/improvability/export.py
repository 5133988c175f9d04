"""The evidence behind a result, and writing candidates out: what they are, their decisions, the fitted algorithm."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from evenhand._version import __version__
from evenhand.audits.improvability.candidates import Candidate
from evenhand.audits.improvability.rules import linear_rule, prepare_columns
from evenhand.audits.improvability.splits import Inputs, Trial, Trials, fit_candidate, make_splits, training_rows
from evenhand.errors import ConfigError, did_you_mean

_DECIDED = ("metric", "group", "margin", "p_median", "p_value", "rejected", "p_adjusted", "established")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, eq=False)
class Evidence:
    """The rows of the data and the trials behind a result. It is kept beside the result, and never written with it.

    Parameters
    ----------
    inputs : the rows, the settings and the margins.
    trials : every candidate's trials, in the order of the splits.
    """

    inputs: Inputs
    trials: Trials

    def export(
        self, folder: Path, candidate: str | None, split: int | None, decisions: Sequence[dict[str, Any]]
    ) -> list[Path]:
        """Write one candidate, or all of them, with the decisions about it."""
        splits = self.inputs.spec.test.splits
        if candidate is not None and candidate not in self.trials:
            raise ConfigError(f"there is no candidate {candidate!r}; {did_you_mean(candidate, self.trials)}")
        if split is not None and not 1 <= split <= splits:
            raise ConfigError(f"`split` must be from 1 to {splits}; got {split}.")
        files: dict[str, bytes] = {}
        for number, name in enumerate([candidate] if candidate is not None else self.trials):
            trial = _median(self.trials[name]) if split is None else self.trials[name][split - 1]
            own = [decision for decision in decisions if decision["model"] == name]
            exhibit = _Exhibit(self, name, trial).files(own)
            files |= {f"{_stem(name, number)}{ending}": content for ending, content in exhibit.items()}
        return _write(folder, files)


def _write(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    paths = {folder / name: content for name, content in files.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in paths.items():
            path.write_bytes(content)
    except OSError as error:
        raise ConfigError(f"the folder '{folder}' cannot be written to: {error.strerror or error}.") from error
    return list(paths)


def _stem(name: str, number: int) -> str:
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name).strip("_")
    return plain[:60] or f"candidate_{number + 1}"


def _median(trials: tuple[Trial, ...]) -> Trial:
    """Return the split whose p-value is the median, among those with a candidate."""
    tested = [trial for trial in trials if trial.status == "ok"] or list(trials)
    p = [trial.p("signed", "fairness")[0] for trial in tested]
    return tested[int(np.argsort(p, kind="stable")[(len(p) - 1) // 2])]


@dataclass(frozen=True, eq=False)
class _Exhibit:
    """One candidate of one split, as files."""

    evidence: Evidence
    name: str
    trial: Trial

    @property
    def candidate(self) -> Candidate:
        """The candidate, or the member that a search chose in this split."""
        candidate = self.evidence.inputs.spec.candidates[self.name]
        if candidate.rule != "search" or self.trial.made is None:
            return candidate
        what = self.trial.made.what
        return next(member for member in candidate.family if member.in_words() == what)

    def files(self, decisions: list[dict[str, Any]]) -> dict[str, bytes]:
        files = {"-decisions.csv": self._decisions().encode()}
        about = self._about(decisions)
        if self.candidate.refits and self.trial.status == "ok":
            self._add_models(files, about)
        files[".json"] = (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()
        return dict(sorted(files.items()))

    def _about(self, decisions: list[dict[str, Any]]) -> dict[str, Any]:
        spec, sample, made = self.evidence.inputs.spec, self.evidence.inputs.sample, self.trial.made
        return {
            "evenhand": __version__,
            "candidate": self.name,
            "split": self.trial.split + 1,
            "settings": spec.candidates[self.name].model_dump(mode="json"),
            "what": made.what if made is not None else None,
            "status": self.trial.status,
            "rows": sample.digest(),
            "seed": spec.seed,
            "capacity": spec.capacity,
            "features": list(sample.features),
            "codes": {feature: list(labels) for feature, labels in sample.labels.items()},
            "coefficients": dict(made.coefficients) if made is not None else {},
            "p_value": float(self.trial.p("signed", "fairness")[0]),
            "decisions": [{part: decision[part] for part in _DECIDED} for decision in decisions],
            "files": {},
        }

    def _add_models(self, files: dict[str, bytes], about: dict[str, Any]) -> None:
        """Add skops and ONNX files; where one cannot be made, say why in the JSON file."""
        pipeline, why = self._pipeline()
        for ending, write in ((".skops", _skops), (".onnx", _onnx)):
            if pipeline is None:
                about["files"][ending] = why
                continue
            try:
                files[ending] = write(pipeline, len(self.evidence.inputs.sample.features))
                about["files"][ending] = "written"
            except Exception as error:  # whatever a converter cannot do
                reason = str(error).strip().splitlines()[0] if str(error) else repr(error)
                about["files"][ending] = f"not written: {reason}"

    def _pipeline(self) -> tuple[Any, str]:
        """Return the fitted pipeline: fitted again from the same rows and seed, or the linear classifier found."""
        if self.candidate.rule == "own":
            return None, "not written: the rule is the user's own function"
        inputs, number = self.evidence.inputs, self.trial.split
        split = make_splits(len(inputs.sample), inputs.spec)[number]
        if self.trial.made is not None and self.trial.made.linear is not None:
            prepared = prepare_columns(training_rows(inputs, self.name, number, split).known())
            ranked = inputs.spec.capacity is not None
            return linear_rule(self.trial.made.linear, prepared, ranked=ranked).pipeline, ""
        fitted = fit_candidate(inputs, self.name, self.candidate, number, split)
        return fitted.pipeline, "not written: a mixture of classifiers has no single pipeline"

    def _decisions(self) -> str:
        """Return the decisions on the test rows of every split as CSV; text that a spreadsheet would run is quoted."""
        sample = self.evidence.inputs.sample
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["split", "row" if sample.ids is None else "id", "group", "outcome", "status_quo", "candidate"])
        for trial in self.evidence.trials[self.name]:
            if trial.made is None:
                continue
            for row, old, new in zip(trial.test, trial.status_quo.values, trial.made.decisions.values, strict=True):
                who = row + 1 if sample.ids is None else _safe(sample.ids[row])
                group = _safe(sample.groups[sample.group[row]])
                outcome = "" if np.isnan(sample.outcome[row]) else f"{sample.outcome[row]:g}"
                writer.writerow([trial.split + 1, who, group, outcome, f"{old:g}", f"{new:g}"])
        return out.getvalue()


def _skops(pipeline: Any, _: int) -> bytes:
    content: bytes = import_module("skops.io").dumps(pipeline)
    return content


def _onnx(pipeline: Any, features: int) -> bytes:
    if find_spec("skl2onnx") is None:
        raise ConfigError("the package 'skl2onnx' is not installed")
    types = import_module("skl2onnx.common.data_types")
    convert = import_module("skl2onnx").convert_sklearn
    model = convert(pipeline, initial_types=[("features", types.DoubleTensorType([None, features]))])
    content: bytes = model.SerializeToString()
    return content


def _safe(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
