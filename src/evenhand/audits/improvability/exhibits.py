"""Export of candidates as files, so that others can check and use them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand._version import __version__
from evenhand.audits.improvability.candidates import Candidate
from evenhand.audits.improvability.rules import linear_rule, prepare_columns
from evenhand.audits.improvability.splits import Inputs, Piece, Trial, fit_candidate, make_splits, training_rows
from evenhand.core.records import OK
from evenhand.errors import ConfigError

if TYPE_CHECKING:
    from evenhand.audits.improvability.result import Decision

_DECIDED = ("metric", "group", "margin", "p_median", "p_value", "rejected", "p_adjusted", "established")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def file_stem(name: str, number: int) -> str:
    """Return the common start of a candidate's file names."""
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name).strip("_")
    return plain[:60] or f"candidate_{number + 1}"


def shown_piece(trials: tuple[Trial, ...], split: int | None) -> tuple[Trial, Piece]:
    """Return the trial and the split or step of the candidate to export.

    The default is the split with the median p-value, or the last step, among splits or steps with a candidate.
    """
    pieces = [(trial, piece) for trial in trials for piece in trial.pieces]
    if split is not None:
        if not 1 <= split <= len(pieces):
            raise ConfigError("`split` must be from 1 to {number}; got {split}.", number=len(pieces), split=split)
        return pieces[split - 1]
    tested = [(trial, piece) for trial, piece in pieces if piece.status == OK] or pieces
    p = [trial.p("signed", "fairness")[0] for trial, _ in tested]
    return tested[int(np.argsort(p, kind="stable")[(len(p) - 1) // 2 if len(trials) > 1 else -1])]


@dataclass(frozen=True, eq=False)
class Exhibit:
    """One candidate as files: its trials, and the split or step of the exported algorithm."""

    inputs: Inputs
    name: str
    trials: tuple[Trial, ...]
    trial: Trial
    piece: Piece

    @property
    def candidate(self) -> Candidate:
        """The candidate, or the member of a search chosen in this split or step."""
        candidate = self.inputs.spec.candidates[self.name]
        if candidate.rule != "search" or self.piece.made is None:
            return candidate
        what = self.piece.made.what
        return next(member for member in candidate.family if member.in_words() == what)

    def files(self, decisions: Sequence[Decision]) -> dict[str, bytes]:
        """Return the files' contents by the ending of the file name."""
        files = {"-decisions.csv": self._decisions().encode()}
        about = self._about(decisions)
        if self.candidate.refits and self.piece.status == OK:
            self._add_models(files, about)
        files[".json"] = (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()
        return dict(sorted(files.items()))

    def _about(self, decisions: Sequence[Decision]) -> dict[str, Any]:
        spec, sample, made = self.inputs.spec, self.inputs.sample, self.piece.made
        return {
            "evenhand": __version__,
            "candidate": self.name,
            "split": self.piece.split + 1,
            "of": len(self.trials) * len(self.trial.pieces),
            "settings": spec.candidates[self.name].model_dump(mode="json"),
            "what": made.what if made is not None else None,
            "status": self.piece.status.text,
            "rows": sample.digest(),
            "seed": spec.seed,
            "capacity": spec.capacity,
            "features": list(sample.features),
            "codes": {feature: list(labels) for feature, labels in sample.labels.items()},
            "coefficients": dict(made.coefficients) if made is not None else {},
            "p_value": float(self.trial.p("signed", "fairness")[0]),
            "decisions": [{part: getattr(decision, part) for part in _DECIDED} for decision in decisions],
            "files": {},
        }

    def _add_models(self, files: dict[str, bytes], about: dict[str, Any]) -> None:
        """Add skops and ONNX files; record failed conversions in the JSON file."""
        pipeline, why = self._pipeline()
        for ending, write in ((".skops", _skops), (".onnx", _onnx)):
            if pipeline is None:
                about["files"][ending] = why
                continue
            try:
                files[ending] = write(pipeline, len(self.inputs.sample.features))
                about["files"][ending] = "written"
            except Exception as error:  # any failure of a converter
                reason = str(error).strip().splitlines()[0] if str(error) else repr(error)
                about["files"][ending] = f"not written: {reason}"

    def _pipeline(self) -> tuple[Any, str]:
        """Return the fitted pipeline, refitted from the same rows and seed, and a reason if there is none."""
        if self.candidate.rule == "own":
            return None, "not written: the rule is the user's own function"
        inputs, name, number = self.inputs, self.name, self.piece.split
        split = make_splits(len(inputs.sample), inputs.spec, inputs.sample.cluster)[number]
        if self.piece.made is not None and self.piece.made.linear is not None:
            prepared = prepare_columns(training_rows(inputs, name, number, split).known())
            ranked = inputs.spec.capacity is not None
            return linear_rule(self.piece.made.linear, prepared, ranked=ranked).pipeline, ""
        fitted = fit_candidate(inputs, name, self.candidate, number, split)
        return fitted.pipeline, "not written: a mixture of classifiers has no single pipeline"

    def _decisions(self) -> str:
        """Return the decisions on the test rows of every split as CSV, with an apostrophe before formula-like text."""
        sample = self.inputs.sample
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["split", "row" if sample.ids is None else "id", "group", "outcome", "status_quo", "candidate"])
        for piece in (piece for trial in self.trials for piece in trial.pieces):
            new_values = piece.status_quo.values if piece.made is None else piece.made.decisions.values
            for row, old, new in zip(piece.test, piece.status_quo.values, new_values, strict=True):
                who = row + 1 if sample.ids is None else _safe(sample.ids[row])
                group = _safe(sample.groups[sample.group[row]])
                outcome = "" if np.isnan(sample.outcome[row]) else f"{sample.outcome[row]:g}"
                writer.writerow([piece.split + 1, who, group, outcome, f"{old:g}", f"{new:g}"])
        return out.getvalue()


def _skops(pipeline: object, _: int) -> bytes:
    content: bytes = import_module("skops.io").dumps(pipeline)
    return content


def _onnx(pipeline: object, features: int) -> bytes:
    if find_spec("skl2onnx") is None:
        raise ConfigError("the package 'skl2onnx' is not installed")
    types = import_module("skl2onnx.common.data_types")
    convert = import_module("skl2onnx").convert_sklearn
    model = convert(pipeline, initial_types=[("features", types.DoubleTensorType([None, features]))])
    content: bytes = model.SerializeToString()
    return content


def _safe(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
