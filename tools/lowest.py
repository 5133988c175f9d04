"""Write the lowest allowed version of every direct dependency, as pip constraints: `tools/lowest.py`.

`make test-versions` runs the tests with these versions, and then with the newest available ones.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(\[[^\]]*\])?>=(?P<version>[0-9.]+)")
TOOLS = {"dev", "docs"}
"""Extras for developers of the package, not for its users; their tools are used in the newest version."""


def lowest() -> list[str]:
    """Return a line `name==version` for each dependency of the package and of its user extras."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(line for name, lines in extras.items() if name not in TOOLS for line in lines)]
    found = {match["name"].lower(): match["version"] for line in asked if (match := REQUIREMENT.match(line))}
    return [f"{name}=={version}" for name, version in sorted(found.items())]


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest()) + "\n")
