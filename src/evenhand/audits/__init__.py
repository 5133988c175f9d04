"""The audits. Each is a folder with the same rooms: spec, audit (Table + Spec -> Result), result, charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.core.result import Draft, Result
    from evenhand.core.spec import Spec
    from evenhand.table.table import Table


@dataclass(frozen=True)
class Entry:
    """An audit as `audit.toml` knows it: its settings, the function that drafts its result, and what that becomes."""

    spec: type[Spec]
    run: Callable[[Table, Any], Draft[Any]]
    result: type[Result]


class _Registry(Mapping[str, Entry]):
    """The audits by name, in the order in which a report shows them; each is imported when it is first asked for.

    The audit `parity` is the folder `parity/` with `ParitySpec` in `spec.py`, `run` in `audit.py` and `ParityResult`
    in `result.py`.
    """

    _NAMES = ("parity", "effort", "disagreement", "reliability", "agreement", "improvability")

    def __getitem__(self, name: str) -> Entry:
        if name not in self._NAMES:
            raise KeyError(name)
        return _load(name)

    def __contains__(self, name: object) -> bool:
        return name in self._NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(self._NAMES)

    def __len__(self) -> int:
        return len(self._NAMES)


@cache
def _load(name: str) -> Entry:
    def member(room: str, attribute: str) -> Any:
        return getattr(import_module(f"evenhand.audits.{name}.{room}"), attribute)

    title = name.capitalize()
    return Entry(member("spec", f"{title}Spec"), member("audit", "run"), member("result", f"{title}Result"))


REGISTRY: Mapping[str, Entry] = _Registry()
"""The audits by name, in the order in which a report shows them."""
