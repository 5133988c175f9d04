"""The audits, one folder each, and the registry of all installed audits."""

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
"""The entry-point group in which packages declare their audits."""

DEFAULT = "parity"
"""The audit that runs by default."""


class _Registry(Mapping[str, "AuditDescriptor"]):
    """The installed audits by name, in the order of a report.

    An audit that cannot be imported is listed by name only: requesting it raises its error. Other audits are not
    affected.
    """

    def __getitem__(self, name: str) -> AuditDescriptor:
        descriptor = _installed(tuple(sys.path))[name]
        if isinstance(descriptor, ConfigError):
            raise descriptor
        return descriptor

    def __contains__(self, name: object) -> bool:
        return name in _installed(tuple(sys.path))

    def __iter__(self) -> Iterator[str]:
        working = [
            descriptor for descriptor in _installed(tuple(sys.path)).values() if not isinstance(descriptor, ConfigError)
        ]
        return iter([audit.name for audit in sorted(working, key=lambda audit: (audit.order, audit.name))])

    def __len__(self) -> int:
        return len(list(iter(self)))


@cache
def _installed(_path: tuple[str, ...]) -> Mapping[str, AuditDescriptor | ConfigError]:
    """Return the descriptors of all audits installed on a path, or their errors, by name."""
    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name, []).append(point)
    return {name: _loaded(name, entry_points_found) for name, entry_points_found in points.items()}


def _loaded(name: str, points: list[EntryPoint]) -> AuditDescriptor | ConfigError:
    """Return the descriptor of an entry point, or the error of loading it."""
    from evenhand.core.descriptor import AuditDescriptor

    places = sorted({point.value for point in points})
    if len(places) > 1:
        return ConfigError(
            "the audit {name!r} is installed twice, as {names}; remove one of them.",
            name=name,
            names=" and ".join(places),
        )
    try:
        descriptor = points[0].load()
    except Exception as error:  # the package is another's: anything may be wrong in it
        why = f"{type(error).__name__}: {error}"
        return ConfigError(
            "the audit {name!r} ({places}) cannot be imported ({why}); mend or remove its package.",
            name=name,
            places=places[0],
            why=why,
        )
    if not isinstance(descriptor, AuditDescriptor) or descriptor.name != name:
        return ConfigError(
            "the audit {name!r} ({places}) is no AuditDescriptor of that name; mend its package.",
            name=name,
            places=places[0],
        )
    return descriptor


REGISTRY: Mapping[str, AuditDescriptor] = _Registry()
"""The installed audits by name, in the order in which a report shows them."""
