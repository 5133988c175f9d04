"""Threads: the same bits on any number of them, progress, and ends before time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenhand.stats.pairs import individual_fairness
from evenhand.stats.types import FloatArray
from evenhand.stats.workers import Step, run_chains

Columns = tuple[FloatArray, FloatArray, FloatArray]
MakeColumns = Callable[[str, int], Columns]


@pytest.mark.parametrize("method", ["strips", "blocks", "grid"])
def test_the_number_of_threads_changes_not_a_bit(method: Any, people: MakeColumns, surveyed: bool) -> None:
    columns = people("discrete" if method == "blocks" else "mixed", 9_000)
    survey = np.random.default_rng(1).gamma(2.0, 1.0, 9_000) if surveyed else None
    one, two, four = (
        individual_fairness(*columns, survey_weight=survey, method=method, threads=threads) for threads in (1, 2, 4)
    )
    for other in (two, four):
        assert (one.value, one.violated, one.low, one.high) == (other.value, other.violated, other.low, other.high)
        np.testing.assert_array_equal(one.row_means, other.row_means)


@pytest.mark.parametrize("method", ["strips", "blocks", "grid", "sampled"])
def test_progress_is_called_and_ends_at_the_total(method: Any, people: MakeColumns) -> None:
    heard: list[tuple[int, int]] = []
    kind = "discrete" if method == "blocks" else "continuous"
    individual_fairness(*people(kind, 9_000), method=method, progress=lambda done, total: heard.append((done, total)))
    assert len(heard) > 3
    assert heard == sorted(heard)
    assert heard[-1][0] == heard[-1][1]
    assert len({total for _, total in heard}) == 1


@pytest.mark.parametrize("method", ["strips", "blocks", "grid", "sampled"])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_progress_raises_ends_the_computation(method: Any, threads: int, people: MakeColumns) -> None:
    class Enough(Exception):  # noqa: N818
        pass

    heard, before = [], threading.active_count()

    def stop(done: int, total: int) -> None:
        heard.append(done)
        raise Enough

    kind = "discrete" if method == "blocks" else "continuous"
    with pytest.raises(Enough):
        individual_fairness(*people(kind, 9_000), method=method, threads=threads, progress=stop)
    assert len(heard) == 1
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_is_heard_between_steps(threads: int, people: MakeColumns) -> None:
    columns = people("continuous", 20_000)
    heard, before = [], threading.active_count()

    def interrupt(done: int, total: int) -> None:
        heard.append(done / total)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        individual_fairness(*columns, method="strips", threads=threads, progress=interrupt)
    assert heard[-1] < 0.9
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 3])
def test_a_failing_step_fails_the_run(threads: int) -> None:
    before = threading.active_count()

    def fail() -> None:
        raise ZeroDivisionError

    chains: list[list[Step]] = [[(1, lambda: None)], [(1, fail), (1, lambda: None)], [(1, lambda: None)]]
    with pytest.raises(ZeroDivisionError):
        run_chains(chains, 4, threads=threads)
    assert threading.active_count() == before
