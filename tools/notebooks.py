"""Run the notebooks of examples/ without Jupyter, for the tests and the documentation."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


@dataclass(frozen=True)
class Cell:
    """An executed cell: its kind and source, its printed output, and the value of its last line."""

    kind: str
    source: str
    printed: str = ""
    value: Any = None


def run(path: Path) -> list[Cell]:
    """Run the cells of a notebook one after the other, as a kernel does."""
    namespace: dict[str, Any] = {"__name__": "notebook"}
    return [
        _run(source, namespace, f"{path.name}, cell {number}")
        if cell["cell_type"] == "code"
        else Cell("markdown", source)
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], start=1)
        for source in ["".join(cell["source"])]
    ]


def _run(source: str, namespace: dict[str, Any], where: str) -> Cell:
    body = ast.parse(source)
    last = body.body[-1]
    if isinstance(last, ast.Expr):
        body.body.pop()
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(body, where, "exec"), namespace)  # noqa: S102
        value = (
            eval(compile(ast.Expression(last.value), where, "eval"), namespace)  # noqa: S307
            if isinstance(last, ast.Expr)
            else None
        )
    return Cell("code", source, out.getvalue(), value)


def page(path: Path) -> str:
    """Return a notebook as a page of the documentation, including printed and displayed output."""
    parts = []
    for cell in run(path):
        if cell.kind == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        parts += [f"```text\n{cell.printed}```"] if cell.printed else []
        parts += [shown(cell.value)] if cell.value is not None else []
    return "\n\n".join(parts) + "\n"


def shown(value: Any) -> str:
    """Return a value as a notebook displays it: its HTML, a chart as a picture, or its text."""
    if hasattr(value, "_repr_html_"):
        html = value._repr_html_()
    else:
        return f"```text\n{value!r}\n```"
    return f'```{{raw}} html\n<div class="output">{html}</div>\n```'


def write_pages(folder: Path) -> None:
    """Write all notebooks as pages."""
    folder.mkdir(exist_ok=True)
    for path in NOTEBOOKS:
        (folder / f"{path.stem}.md").write_text(page(path), encoding="utf-8")
