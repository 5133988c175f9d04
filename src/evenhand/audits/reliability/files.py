"""Models from files: ONNX, skops, and pickles where the user allows what they can do."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.audits.reliability.sources import PICKLES
from evenhand.errors import ConfigError, EvenhandError, require_extra
from evenhand.stats.types import FloatArray

_NUMBERS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigError(f"the model file '{path.name}' cannot be read: {error.strerror or error}.") from None


def load_file(path: Path, *, trusted: Sequence[str], allow_pickle: bool) -> Any:
    """Return the model of a file.

    Parameters
    ----------
    path : the file; its ending says what it is.
    trusted : types that a skops file may hold beside those that skops trusts itself.
    allow_pickle : whether files that can run any code when they are read may be read.
    """
    if path.suffix.lower() == ".onnx":
        return OnnxModel(path)
    if path.suffix.lower() == ".skops":
        return _load_skops(path, trusted)
    if path.suffix.lower() in PICKLES and not allow_pickle:
        raise ConfigError(
            f"'{path.name}' is a pickle, and reading one can run any code; save the model as ONNX or skops, or read it "
            "with allow_pickle=True if you made it yourself."
        )
    require_extra("joblib", "models", f"the model file '{path.name}'")
    try:
        return import_module("joblib").load(path)
    except Exception as error:
        raise _unreadable(path, error) from error


def _load_skops(path: Path, trusted: Sequence[str]) -> Any:
    require_extra("skops", "models", f"the model file '{path.name}'")
    skops = import_module("skops.io")
    try:
        unknown = [name for name in skops.get_untrusted_types(file=path) if name not in trusted]
    except Exception as error:
        raise _unreadable(path, error) from error
    if unknown:
        listed = ", ".join(repr(name) for name in unknown[:5])
        raise ConfigError(
            f"'{path.name}' holds types that skops does not trust: {listed}; look at them, and name them in `trusted` "
            "if you know what they do."
        )
    try:
        return skops.load(path, trusted=list(trusted))
    except Exception as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> EvenhandError:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    return EvenhandError(f"the model file '{path.name}' cannot be read: {reason}")


class OnnxModel:
    """A model in ONNX: one input of all columns, or one for each column by its name.

    Parameters
    ----------
    path : the file.
    """

    def __init__(self, path: Path) -> None:
        require_extra("onnxruntime", "models", f"the model file '{path.name}'")
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # sums of several threads differ in their last bits
        options.log_severity_level = 3
        try:
            self.session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise _unreadable(path, error) from error
        self.name = path.name
        self.inputs = self.session.get_inputs()
        self.scores = self._output()
        self.label = self._label()
        self.classes: list[Any] | None = None

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of its columns, where it has one input for each."""
        return tuple(given.name for given in self.inputs) if len(self.inputs) > 1 else None

    @property
    def width(self) -> int | None:
        """How many columns its one input has, where it says so."""
        shape = self.inputs[0].shape
        return shape[1] if len(self.inputs) == 1 and len(shape) == 2 and isinstance(shape[1], int) else None

    def predict(self, columns: dict[str, npt.NDArray[Any]]) -> tuple[FloatArray, list[Any] | None]:
        """Return scores, or the chances of classes and the classes: None for one that is not known."""
        if len(self.inputs) > 1:
            fed = {given.name: self._typed(columns[given.name][:, np.newaxis], given.type) for given in self.inputs}
        else:
            fed = {self.inputs[0].name: self._typed(np.column_stack(list(columns.values())), self.inputs[0].type)}
        found, *labels = self.session.run([name for name in (self.scores, self.label) if name is not None], fed)
        if isinstance(found, list):  # a map of probabilities by class for each row, as converters make by default
            self.classes = list(found[0]) if found else self.classes
            return np.array([list(row.values()) for row in found], dtype=np.float64), self.classes
        scores = np.asarray(found, dtype=np.float64)
        if labels and scores.ndim == 2 and scores.shape[1] == 2:
            self._learn_classes(scores, np.asarray(labels[0]).ravel())
        return scores, self.classes

    def _learn_classes(self, scores: FloatArray, labels: npt.NDArray[Any]) -> None:
        """Note what the model calls the likelier class: an array of chances does not say which is whose."""
        known = self.classes or [None, None]
        for at in (0, 1):
            likelier = np.flatnonzero(scores[:, at] > scores[:, 1 - at])
            if known[at] is None and likelier.size:
                known[at] = labels[likelier[0]].item() if labels.dtype != object else labels[likelier[0]]
        self.classes = known if known != [None, None] else None
        if self.classes is not None and None not in self.classes:
            self.label = None  # all is known

    def _typed(self, values: npt.NDArray[Any], wanted: str) -> npt.NDArray[Any]:
        if wanted == "tensor(string)":
            return values.astype(str).astype(object)
        if wanted == "tensor(bool)":
            return values.astype(np.bool_)
        if wanted not in _NUMBERS:
            raise EvenhandError(
                f"the model '{self.name}' wants an input of the type {wanted}, which is not known here."
            )
        return values.astype(_NUMBERS[wanted])

    def _output(self) -> str:
        """Return the output that holds scores: probabilities where there are any, else the last one of numbers."""
        found: dict[str, str] = {given.name: given.type for given in self.session.get_outputs()}
        likely = [name for name in found if "prob" in name.lower()]
        numbers = [name for name, kind in found.items() if "float" in kind or "double" in kind]
        if not likely and not numbers:
            raise EvenhandError(f"the model '{self.name}' gives no scores; its outputs are {', '.join(found)}.")
        return (likely or numbers)[-1]

    def _label(self) -> str | None:
        """Return the output that holds the class of each row, where there is one."""
        kinds = ("tensor(int64)", "tensor(int32)", "tensor(string)", "tensor(bool)")
        return next((given.name for given in self.session.get_outputs() if given.type in kinds), None)
