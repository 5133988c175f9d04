"""The range of every finding over several seeds, which shows its dependence on random draws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from evenhand.audits import REGISTRY
from evenhand.core.findings import Finding
from evenhand.errors import count
from evenhand.messages.formats import show, show_p


@dataclass(frozen=True)
class SeedRange:
    """A finding, and the matching findings of runs with other seeds.

    Parameters
    ----------
    finding : the finding of the reported run.
    others : the finding on the same question in each run that has it.
    runs : the number of runs.
    """

    finding: Finding
    others: tuple[Finding, ...]
    runs: int

    @property
    def says_so(self) -> int:
        """The number of runs with the same headline and verdict."""
        return sum(_statement(other) == _statement(self.finding) for other in self.others)

    @property
    def sentence(self) -> str:
        """The ranges of the value and the p-value, and the number of runs with the same statement, as text."""
        parts = [
            *_range([finding.value for finding in self.others], lambda x: show(x, self.finding.style)),
            *_range([_p_of(finding) for finding in self.others], show_p),
        ]
        said = f"the same statement in {self.says_so} of {self.runs}"
        return "; ".join([*parts, said])


def over_seeds(reported: Sequence[Finding], runs: Sequence[Sequence[Finding]]) -> list[SeedRange]:
    """Return each reported finding with the matching findings of all runs.

    Parameters
    ----------
    reported
        The findings of the reported run.
    runs
        The findings of each run with another seed.
    """
    by_question = [_by_question(findings) for findings in runs]
    ranges = []
    for question, findings in _by_question(reported).items():
        for position, finding in enumerate(findings):
            others = (each[question][position] for each in by_question if len(each.get(question, ())) > position)
            ranges.append((finding, SeedRange(finding, tuple(others), len(runs))))
    places = {id(finding): place for place, finding in enumerate(reported)}
    return [found for finding, found in sorted(ranges, key=lambda pair: places[id(pair[0])])]


def summary(ranges: Iterable[SeedRange], seeds: Sequence[int]) -> list[str]:
    """Return the lines of a summary: the findings that depend on the seed, and the number of the rest."""
    moved, still = [], 0
    for found in ranges:
        if len({_numbers(other) for other in found.others}) <= 1 and found.says_so == found.runs:
            still += 1
        else:
            moved.append(f"{found.finding.headline}\n  {found.sentence}")
    lines = [f"Over {count(len(seeds), 'seed')}, {seeds[0]} to {seeds[-1]}:", *moved]
    return (
        [*lines, f"{count(still, 'finding')} {'does' if still == 1 else 'do'} not depend on the seed."]
        if still
        else lines
    )


def _by_question(findings: Iterable[Finding]) -> dict[Hashable, list[Finding]]:
    """Return findings by question, ignoring the order of models and groups and the groups of worst pairs."""
    questions: dict[Hashable, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups = frozenset() if finding.against == "worst_pair" else frozenset((finding.group, finding.reference))
        about = (finding.audit, finding.metric, finding.kind, finding.against, finding.grouping, finding.stratum)
        result = REGISTRY[finding.audit].result
        place = tuple(finding.coordinates.get(name) for name in result.places if name not in result.found_places)
        limit = None if finding.threshold is None else finding.threshold.text
        questions[about, frozenset((finding.model, finding.model_reference)), groups, place, limit].append(finding)
    return questions


def _statement(finding: Finding) -> Hashable:
    sides = (finding.model, finding.model_reference, finding.group, finding.reference)
    return finding.sentence_id, finding.verdict, sides


def _numbers(finding: Finding) -> Hashable:
    return finding.value, finding.low, finding.high, _p_of(finding)


def _p_of(finding: Finding) -> float | None:
    return finding.p_value if finding.p_adjusted is None else finding.p_adjusted


def _range(numbers: Sequence[float | None], shown: Callable[[float], str]) -> list[str]:
    known = [number for number in numbers if number is not None]
    ends = dict.fromkeys(shown(end) for end in (min(known), max(known))) if known else ()
    return [" to ".join(ends)] if known else []
