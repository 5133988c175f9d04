"""Judge limits on ratios of selection rates on the favourable side, as the four-fifths rule does.

The same decisions can give a ratio of 0.31 of the rejection rates and a ratio of 0.75 of the acceptance rates. The
Uniform Guidelines compare rates of the favourable decision (29 CFR 1607.4 D).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from evenhand.audits.parity.messages import say
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.thresholds import Threshold
from evenhand.messages import Message
from evenhand.table.table import Table

_SELECTED, _NOT_SELECTED = "selection_rate", "not_selected_rate"


def on_the_favourable_side(table: Table, spec: ParitySpec) -> tuple[ParitySpec, tuple[Message, ...]]:
    """Move limits on ratios of selection rates to the favourable rate, and return settings and notes."""
    adverse = [model for model in table.models if table.prediction(model).favourable == "not_selected"]
    thresholds = tuple(each for given in spec.thresholds for each in _for_models(given, spec, table.models, adverse))
    turned = bool(adverse) and _SELECTED in spec.ratios
    if thresholds == spec.thresholds and not turned:
        return spec, ()
    metrics = None if spec.metrics is None else tuple(dict.fromkeys((*spec.metrics, _NOT_SELECTED)))
    ratios = tuple(dict.fromkeys((*spec.ratios, _NOT_SELECTED))) if turned else spec.ratios
    note = say("favourable_side", models=tuple(adverse))
    return spec.model_copy(update={"thresholds": thresholds, "metrics": metrics, "ratios": ratios}), (note,)


def is_favourable_side(metric: str, favourable: str | None, ratios: Collection[str]) -> bool:
    """Return whether a rate is not the adverse side of a rate with a requested ratio."""
    if not {_SELECTED, _NOT_SELECTED} <= set(ratios):
        return True
    return metric != (_SELECTED if favourable == "not_selected" else _NOT_SELECTED)


def _for_models(
    threshold: Threshold, spec: ParitySpec, models: Collection[str], adverse: Collection[str]
) -> Iterator[Threshold]:
    """Yield a limit unchanged, moved to the favourable side, or split by model into both."""
    limited = {threshold.model} if threshold.model else set(models)
    turned = limited & set(adverse)
    if spec.metric_of(threshold) != _SELECTED or threshold.kind != "ratio" or not turned:
        yield threshold
        return
    other_side = {"metric": _NOT_SELECTED, "of": "gap", "audit": spec.audit}
    if turned == limited:
        yield threshold.model_copy(update=other_side)
        return
    for model in (model for model in models if model in limited):
        yield threshold.model_copy(update={"model": model, **(other_side if model in turned else {})})
