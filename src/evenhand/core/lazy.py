"""Lazy imports: names of a package that are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package; `modules` are the submodules by attribute name.

    Examples
    --------
    >>> names = lazy("evenhand.core", {"Metric": "metrics"})
    >>> names("Metric").__name__
    'Metric'
    """

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return get
