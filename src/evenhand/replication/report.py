"""`replicate`: the four papers' tables and figures that the data allow, as an HTML page and a JSON file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand._version import __version__
from evenhand.core.display import DisplayTable, Section
from evenhand.core.files import write_files
from evenhand.core.progress import step, timed
from evenhand.core.provenance import run_record
from evenhand.datasets.registry import DATA_VARIABLE
from evenhand.errors import ConfigError, count, require_choice
from evenhand.messages.formats import json_text, rounded
from evenhand.replication.disagreement import replicate_disagreement
from evenhand.replication.effort import replicate_effort
from evenhand.replication.improvability import replicate_improvability
from evenhand.replication.records import Chapter, Verdict
from evenhand.replication.reliability import replicate_reliability
from evenhand.report.page import render_page, section_view

PAPERS: dict[str, Callable[[], Chapter]] = {
    "effort": replicate_effort,
    "disagreement": replicate_disagreement,
    "reliability": replicate_reliability,
    "improvability": replicate_improvability,
}
"""The four papers, each with the function that replicates it."""

_VERDICTS: dict[Verdict, str] = {"holds": "hold", "holds in part": "hold in part", "does not hold": "do not hold"}


@dataclass(frozen=True, eq=False)
class Replication:
    """The results for all papers, with the time and software of the run.

    Parameters
    ----------
    chapters : the results for each paper.
    run : time and software of the run.
    """

    chapters: tuple[Chapter, ...]
    run: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of `replication.json`."""
        return {"evenhand": __version__, "papers": [chapter.to_dict() for chapter in self.chapters]}

    def to_html(self) -> str:
        """Return the page with a section for each paper, and the errata."""
        sections = [
            section_view(chapter.name, Section(chapter.title, chapter.citation, tuple(chapter.parts()), ()))
            for chapter in self.chapters
        ]
        columns = ("Where", "As printed", "As it is")
        errata = tuple(DisplayTable(chapter.title, columns, chapter.errata) for chapter in self.chapters)
        question = "What is wrong in the papers, found while they were replicated. The documentation has the proofs."
        sections.append(section_view("errata", Section("Appendix: errata", question, errata, ())))
        return render_page(
            "replication.html", sections=sections, chapters=self.chapters, run=self.run, **self._counts()
        )

    def _counts(self) -> dict[str, Any]:
        lines = [line for chapter in self.chapters for line in chapter.lines]
        verdicts = Counter(claim.verdict for chapter in self.chapters for claim in chapter.claims)
        return {
            "agreeing": sum(line.agrees for line in lines),
            "lines": len(lines),
            "verdicts": dict(verdicts),
            "missing": sum(len(chapter.missing) for chapter in self.chapters),
        }

    def summary(self) -> str:
        """Return a summary with one line per paper."""
        lines = []
        for chapter in self.chapters:
            claims = Counter(claim.verdict for claim in chapter.claims)
            verdicts = ", ".join(
                f"{claims[verdict]} {words}" for verdict, words in _VERDICTS.items() if claims[verdict]
            )
            wait = f"; {count(len(chapter.missing), 'item')} cannot be had" if chapter.missing else ""
            lines.append(
                f"{chapter.title}: numbers: {chapter.agreeing()}{f'; claims: {verdicts}' if verdicts else ''}{wait}"
            )
        return "\n".join(lines)

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """Write `replication.html` and `replication.json` into a folder; return their paths."""
        files = {"replication.html": self.to_html(), "replication.json": json_text(rounded(self.to_dict()))}
        return write_files(folder, files)


def replicate(papers: Sequence[str] = (), *, data: str | os.PathLike[str] | None = None) -> Replication:
    """Replicate the four papers as far as the available data allow, without downloads.

    Parameters
    ----------
    papers
        Names of `PAPERS`; by default all of them.
    data
        The data folder, overriding EVENHAND_DATA.

    Examples
    --------
    >>> found = replicate(["effort"])
    >>> all(line.agrees for line in found.chapters[0].lines)
    True
    """
    for name in papers:
        require_choice("paper", name, list(PAPERS))
    if data is not None and not Path(data).is_dir():
        raise ConfigError("`data` is '{data}'; there is no such folder.", data=data)
    chapters = []
    with _data_in(data), timed() as clock:
        for name in dict.fromkeys(papers or PAPERS):
            with clock.timing(name):
                step(f"Replicating the paper on {name}")
                chapters.append(PAPERS[name]())
    return Replication(tuple(chapters), run_record(clock))


@contextmanager
def _data_in(folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """Set EVENHAND_DATA for the loaders within the `with` block."""
    before = os.environ.get(DATA_VARIABLE)
    if folder is not None:
        os.environ[DATA_VARIABLE] = os.fspath(folder)
    try:
        yield
    finally:
        if folder is not None:
            os.environ.pop(DATA_VARIABLE)
            if before is not None:
                os.environ[DATA_VARIABLE] = before
