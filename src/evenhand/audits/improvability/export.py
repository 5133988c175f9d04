"""Writing candidates out: what they are, their decisions, and the fitted algorithm where a format can hold it."""

from __future__ import annotations

import csv
import io
import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand._version import __version__
from evenhand.audits.improvability.candidates import Candidate
from evenhand.audits.improvability.splits import Trial, fit_candidate, make_splits
from evenhand.audits.improvability.tables import JUDGED
from evenhand.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from evenhand.audits.improvability.result import ImprovabilityResult

_DECIDED = ("target", "group", "delta", "p_median", "value", "rejected", "p_adjusted", "established")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_candidates(
    result: ImprovabilityResult, folder: Path, candidate: str | None, split: int | None
) -> list[Path]:
    """Write one candidate, or all of them."""
    if candidate is not None and candidate not in result.trials:
        raise ConfigError(f"there is no candidate {candidate!r}; {did_you_mean(candidate, result.trials)}")
    if split is not None and not 1 <= split <= result.spec.test.splits:
        raise ConfigError(f"`split` must be from 1 to {result.spec.test.splits}; got {split}.")
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, name in enumerate([candidate] if candidate is not None else result.trials):
            stem = _stem(name, number)
            for ending, content in _files(result, name, split).items():
                path = folder / f"{stem}{ending}"
                path.write_bytes(content)
                written.append(path)
    except OSError as error:
        raise ConfigError(f"the folder '{folder}' cannot be written to: {error.strerror or error}.") from error
    return written


def _stem(name: str, number: int) -> str:
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name).strip("_")
    return plain[:60] or f"candidate_{number + 1}"


def _files(result: ImprovabilityResult, name: str, split: int | None) -> dict[str, bytes]:
    tested = result.trials[name]
    one = tested[split - 1] if split is not None else _median(tested)
    files = {"-decisions.csv": _decisions(result, tested).encode()}
    about = _about(result, name, one)
    candidate = _member(result, name, one)
    if candidate.refits and one.status == "ok":
        _add_models(result, name, one, candidate, files, about)
    files[".json"] = (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()
    return dict(sorted(files.items()))


def _median(tested: tuple[Trial, ...]) -> Trial:
    """Return the split whose p-value is the median, among those with a candidate."""
    known = [one for one in tested if one.status == "ok"] or list(tested)
    p = [one.p(JUDGED, "fairness")[0] for one in known]
    return known[int(np.argsort(p, kind="stable")[(len(p) - 1) // 2])]


def _member(result: ImprovabilityResult, name: str, one: Trial) -> Candidate:
    """Return the candidate, or the member that a search chose in this split."""
    candidate = result.spec.candidates[name]
    if candidate.rule != "search" or one.made is None:
        return candidate
    return next(member for member in candidate.family if member.in_words() == one.made.what)


def _about(result: ImprovabilityResult, name: str, one: Trial) -> dict[str, Any]:
    spec, sample = result.spec, result.inputs.sample
    return {
        "evenhand": __version__,
        "candidate": name,
        "split": one.split + 1,
        "settings": spec.candidates[name].model_dump(mode="json"),
        "what": one.made.what if one.made is not None else None,
        "status": one.status,
        "rows": result.hash,
        "seed": spec.seed,
        "capacity": spec.capacity,
        "features": list(sample.features),
        "codes": {feature: list(labels) for feature, labels in sample.labels.items()},
        "coefficients": dict(one.made.coefficients) if one.made is not None else {},
        "p_value": float(one.p(JUDGED, "fairness")[0]),
        "decisions": [
            {name: getattr(d, name) for name in _DECIDED}
            for d in result.decision
            if (d.candidate, d.test) == (name, JUDGED)
        ],
        "files": {},
    }


def _add_models(
    result: ImprovabilityResult,
    name: str,
    one: Trial,
    candidate: Candidate,
    files: dict[str, bytes],
    about: dict[str, Any],
) -> None:
    """Add skops and ONNX files; where one cannot be made, say why in the JSON file."""
    pipeline, why = _pipeline(result, name, one, candidate)
    for ending, write in ((".skops", _skops), (".onnx", _onnx)):
        if pipeline is None:
            about["files"][ending] = why
            continue
        try:
            files[ending] = write(pipeline, len(result.inputs.sample.features))
            about["files"][ending] = "written"
        except Exception as error:  # whatever a converter cannot do
            about["files"][ending] = f"not written: {str(error).strip().splitlines()[0] if str(error) else error!r}"


def _pipeline(result: ImprovabilityResult, name: str, one: Trial, candidate: Candidate) -> tuple[Any, str]:
    """Return the fitted pipeline: fitted again from the same rows and seed, or the linear classifier that was found."""
    if candidate.rule == "own":
        return None, "not written: the rule is the user's own function"
    split = make_splits(len(result.inputs.sample), result.spec)[one.split]
    if one.made is not None and one.made.linear is not None:
        return _linear(result, name, one, split), ""
    fitted = fit_candidate(result.inputs, name, candidate, one.split, split)
    return fitted.pipeline, "not written: a mixture of classifiers has no single pipeline"


def _linear(result: ImprovabilityResult, name: str, one: Trial, split: Any) -> Any:
    from evenhand.audits.improvability.rules import linear_rule, prepare_columns
    from evenhand.audits.improvability.splits import training_rows

    assert one.made is not None  # noqa: S101
    assert one.made.linear is not None  # noqa: S101
    prepared = prepare_columns(training_rows(result.inputs, name, one.split, split).known())
    return linear_rule(one.made.linear, prepared, ranked=result.spec.capacity is not None).pipeline


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


def _decisions(result: ImprovabilityResult, tested: tuple[Trial, ...]) -> str:
    """Return the decisions on the test rows of every split as CSV; text that a spreadsheet would run is quoted."""
    sample = result.inputs.sample
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["split", "row" if sample.ids is None else "id", "group", "outcome", "status_quo", "candidate"])
    for one in tested:
        if one.made is None:
            continue
        for row, old, new in zip(one.test, one.status_quo.values, one.made.decisions.values, strict=True):
            who = row + 1 if sample.ids is None else _safe(sample.ids[row])
            group = _safe(sample.groups[sample.group[row]])
            outcome = "" if np.isnan(sample.outcome[row]) else f"{sample.outcome[row]:g}"
            writer.writerow([one.split + 1, who, group, outcome, f"{old:g}", f"{new:g}"])
    return out.getvalue()


def _safe(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
