"""Groups among people of similar effort, from people in memory or from cells that a data engine counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from evenhand.audits.effort.crowd import Crowd, numbers_of
from evenhand.audits.effort.groups import GroupMeans, bin_records, group_means, means_from_sums, require_bins
from evenhand.audits.effort.people import People
from evenhand.audits.effort.records import BinGroupRecord, BinRecord, SpreadRecord
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.progress import step
from evenhand.stats.effort import effort_bins
from evenhand.stats.types import IntArray
from evenhand.table.cells import Cells
from evenhand.table.table import Table

SPREAD_BINS = 30


def compare_groups(
    table: Table, subjects: People | Crowd, spec: EffortSpec
) -> tuple[list[BinRecord], list[BinGroupRecord]]:
    """Return the parity and the group means of every effort bin, for every model and grouping."""
    bins: list[BinRecord] = []
    groups: list[BinGroupRecord] = []
    if table.groupings:
        require_bins(subjects.highest, spec.width)
    for model in table.models:
        step(f"Comparing groups by effort under {model}")
        means_of = _means(subjects, model, spec)
        for grouping, columns in table.groupings.items():
            of_bins, of_groups = bin_records(*means_of(columns), model, grouping, spec)
            bins += of_bins
            groups += of_groups
    return bins, groups


def spread_records(table: Table, subjects: People | Crowd) -> Iterator[SpreadRecord]:
    """Yield how effort is spread within every group, in equal bins from 0 to the highest effort."""
    highest = subjects.highest
    if isinstance(subjects, Crowd):
        cells = subjects.spread_cells(SPREAD_BINS)
        bins = numbers_of(cells, "bin")
    else:
        cells = subjects.rows.groups
        at = np.floor(subjects.effort * (SPREAD_BINS / max(highest, 1e-9)))
        bins = np.clip(at, 0, SPREAD_BINS - 1).astype(np.int64)
    for grouping, columns in table.groupings.items():
        codes, labels = cells.joint(columns)
        size = len(labels) * SPREAD_BINS
        n = np.bincount(codes * SPREAD_BINS + bins, weights=cells.n, minlength=size).reshape(len(labels), SPREAD_BINS)
        for group, counts in zip(labels, n, strict=True):
            for number in np.flatnonzero(counts).tolist():
                low, high = (highest * edge / SPREAD_BINS for edge in (number, number + 1))
                share = float(counts[number] / counts.sum())
                yield SpreadRecord(grouping, group, low, high, int(counts[number]), share)


Means = tuple[GroupMeans, GroupMeans, tuple[str, ...]]


def _means(subjects: People | Crowd, model: str, spec: EffortSpec) -> Callable[[tuple[str, ...]], Means]:
    """Return what gives the mean scores of a grouping's groups in every effort bin and in all, with their labels."""
    if isinstance(subjects, Crowd):
        return partial(_from_cells, subjects.bin_cells(model))
    return partial(_from_people, subjects, model, spec)


def _from_people(people: People, model: str, spec: EffortSpec, columns: tuple[str, ...]) -> Means:
    codes, labels = people.rows.groups.joint(columns)
    bins = effort_bins(people.effort, spec.width)
    score, weight = people.rows.scores[model], people.rows.weight
    parts = group_means(bins, codes, score, weight, int(bins.max()) + 1, len(labels))
    return parts, group_means(np.zeros_like(bins), codes, score, weight, 1, len(labels)), labels


def _from_cells(cells: Cells, columns: tuple[str, ...]) -> Means:
    codes, labels = cells.joint(columns)
    bins: IntArray = numbers_of(cells, "bin")
    parts = means_from_sums(bins, codes, cells, int(bins.max()) + 1, len(labels))
    return parts, means_from_sums(np.zeros_like(bins), codes, cells, 1, len(labels)), labels
