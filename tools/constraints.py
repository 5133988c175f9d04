"""Write constraints.txt: a tested version of every package that evenhand and its extras install.

Run it with `make constraints`. It contains only names and versions; the installer chooses the package index.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RESOLVED_EXTRAS = "models,study,files,pdf,spark,docs,dev"


def main() -> None:
    """Ask pip what it would install into an empty environment, and pin these versions."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", "--report", "-"]
    asked = subprocess.run([*pip, f".[{RESOLVED_EXTRAS}]"], check=True, capture_output=True, text=True)
    report = json.loads(asked.stdout)
    pins = {_name(item): item["metadata"]["version"] for item in report["install"]}
    pins.pop("evenhand", None)
    lines = [
        "# Written by `make constraints`.",
        *(f"{name}=={version}" for name, version in sorted(pins.items())),
    ]
    Path("constraints.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _name(item: dict[str, dict[str, str]]) -> str:
    return item["metadata"]["name"].lower().replace("_", "-")


if __name__ == "__main__":
    main()
