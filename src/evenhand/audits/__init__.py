"""The audits: one folder each, and the registry of all that are installed, ours and those of others."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from evenhand.errors import ConfigError

if TYPE_CHECKING:
    from evenhand.core.descriptor import AuditDescriptor

GROUP = "evenhand.audits"
"""The entry points under which a package names the descriptors of its audits."""

DEFAULT = "parity"
"""The audit that runs where none is named."""


class _Registry(Mapping[str, "AuditDescriptor"]):
    """The installed audits by name, in the order in which a report shows them.

    One that cannot be imported is known by its name only: to ask for it is an error that names it, and the others are
    not touched.
    """

    def __getitem__(self, name: str) -> AuditDescriptor:
        found = _installed(tuple(sys.path))[name]
        if isinstance(found, ConfigError):
            raise found
        return found

    def __contains__(self, name: object) -> bool:
        return name in _installed(tuple(sys.path))

    def __iter__(self) -> Iterator[str]:
        working = [found for found in _installed(tuple(sys.path)).values() if not isinstance(found, ConfigError)]
        return iter([audit.name for audit in sorted(working, key=lambda audit: (audit.order, audit.name))])

    def __len__(self) -> int:
        return len(list(iter(self)))


@cache
def _installed(_path: tuple[str, ...]) -> Mapping[str, AuditDescriptor | ConfigError]:
    """Return the descriptors of what is installed on this path, or why there is none, by name."""
    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name, []).append(point)
    return {name: _loaded(name, found) for name, found in points.items()}


def _loaded(name: str, points: list[EntryPoint]) -> AuditDescriptor | ConfigError:
    """Return the descriptor that an entry point names, or the error that tells why it cannot be had."""
    from evenhand.core.descriptor import AuditDescriptor

    places = sorted({point.value for point in points})
    if len(places) > 1:
        return ConfigError(
            "the audit {name!r} is installed twice, as {names}; remove one of them.",
            name=name,
            names=" and ".join(places),
        )
    try:
        found = points[0].load()
    except Exception as error:  # the package is another's: anything may be wrong in it
        why = f"{type(error).__name__}: {error}"
        return ConfigError(
            "the audit {name!r} ({places}) cannot be imported ({why}); mend or remove its package.",
            name=name,
            places=places[0],
            why=why,
        )
    if not isinstance(found, AuditDescriptor) or found.name != name:
        return ConfigError(
            "the audit {name!r} ({places}) is no AuditDescriptor of that name; mend its package.",
            name=name,
            places=places[0],
        )
    return found


REGISTRY: Mapping[str, AuditDescriptor] = _Registry()
"""The installed audits by name, in the order in which a report shows them."""
