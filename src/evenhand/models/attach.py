"""A table with the scores of models among its predictions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.errors import ConfigError
from evenhand.models.folds import out_of_fold
from evenhand.models.spec import ModelsSettings
from evenhand.models.training import Training, read_training
from evenhand.stats.types import FloatArray
from evenhand.table.sources import FileOptions, Source
from evenhand.table.table import Table


def add_models(
    table: Table, arguments: Mapping[str, Any], settings: ModelsSettings, progress: Callable[[str], None] | None = None
) -> tuple[Table, str]:
    """Fit models, and return the table with their scores as predictions, and the hash of the data behind it.

    Parameters
    ----------
    table : the table without the models, checked.
    arguments : the arguments it was made from; `threshold` and `favourable` hold for the new predictions too.
    settings : what to fit.
    progress : is told what happens next.
    """
    for name in settings.fit:
        if name in table.models:
            raise ConfigError(f"the table already has predictions called {name!r}; give the model another name.")
    given = {name: arguments[name] for name in FileOptions.model_fields if name in arguments}
    options = FileOptions.parse(given, "the options of the file")
    training = read_training(arguments["data"], options, table.roles, settings.features)
    _require_new_columns(training.source, settings)
    scores = out_of_fold(training, settings, progress)
    predictions: dict[str, Any] = {
        **table.roles.predictions,
        **{name: {"column": name, "kind": "score"} for name in scores},
    }
    scored = Table(**{**arguments, "data": _with_columns(training.source, scores), "predictions": predictions})
    notes = (*table.source.notes, *scored.source.notes, _note(training, settings))
    # The rows are still those of the files, which is what identifies them.
    scored.source = replace(scored.source, paths=table.source.paths, notes=tuple(dict.fromkeys(notes)))
    return scored, hashlib.sha256(f"{table.digest()}\n{training.digest()}\n".encode()).hexdigest()


def _require_new_columns(source: Source, settings: ModelsSettings) -> None:
    taken = {name.casefold(): name for name in source.frame.collect_schema().names()}
    for name in settings.fit:
        if name.casefold() in taken:
            raise ConfigError(f"the data already has a column {taken[name.casefold()]!r}; give the model another name.")


def _with_columns(source: Source, columns: Mapping[str, FloatArray]) -> Any:
    """Return the data with more columns, in memory, for a frame of the user's or data that our connection reads."""
    frame: Any = source.frame
    if isinstance(frame, nw.DataFrame):
        library = frame.implementation
        added = [nw.new_series(name, values, nw.Float64, backend=library) for name, values in columns.items()]
        return frame.with_columns(*added).to_native()
    connection, rows = source.connection, "evenhand_row"
    numbers = np.arange(1, len(next(iter(columns.values()))) + 1)
    connection.register("evenhand_scores", {rows: numbers, **columns})
    numbered = frame.to_native().project(f"*, row_number() over () as {rows}")
    numbered.join(connection.table("evenhand_scores"), rows).project(f"* exclude ({rows})").create("evenhand_scored")
    return connection.table("evenhand_scored")


def _note(training: Training, settings: ModelsSettings) -> str:
    names, features = ", ".join(settings.fit), ", ".join(settings.features)
    used = int(training.usable.sum())
    return (
        f"The scores of {names} were fitted here, out of fold: {settings.folds} folds of {used:,} people, "
        f"features {features}."
    )
