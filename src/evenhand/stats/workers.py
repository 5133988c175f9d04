"""Parallel work: threads for compiled kernels, and joblib's backends for refits and replicates.

The work is always divided in the same way and its results are combined in a fixed order, so neither the number of
threads nor the backend can change a result.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pickle import PicklingError
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, TypeVar

from evenhand.errors import ConfigError, require_at_least

T = TypeVar("T")
Progress = Callable[[int, int], None]
Step = tuple[int, Callable[[], None]]  # the amount of work, and the function that does it


def thread_count(threads: int | None) -> int:
    """Return the number of threads to use, by default the number of cores available to this process.

    Examples
    --------
    >>> thread_count(3)
    3
    """
    if threads is not None:
        require_at_least("threads", threads, 1)
        return threads
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def run_chains(
    chains: Sequence[Iterable[Step]], total: int, *, threads: int | None = None, progress: Progress | None = None
) -> None:
    """Run chains of steps: steps of one chain in order, different chains in parallel.

    Steps must release the interpreter lock to benefit from threads. Progress is reported in the caller's thread; an
    exception in it, a failing step or Ctrl-C ends the run once the running steps are done.

    Parameters
    ----------
    chains
        Steps as pairs of an amount of work and a function. A chain writes only to its own data.
    total
        The total work of all steps.
    threads
        Number of threads, by default the number of cores.
    progress
        Called as `progress(done, total)` after each step.

    Examples
    --------
    >>> sums = [0.0, 0.0]
    >>> def add(slot, value):
    ...     def step():
    ...         sums[slot] += value
    ...     return (1, step)
    >>> run_chains([[add(0, 1.0), add(0, 2.0)], [add(1, 5.0)]], 3, threads=2, progress=lambda done, total: None)
    >>> sums
    [3.0, 5.0]
    """
    workers = min(thread_count(threads), len(chains))
    done = 0
    with closing(_inline(chains) if workers <= 1 else _threaded(chains, workers)) as finished:
        for work in finished:
            done += work
            if progress is not None:
                progress(done, total)


def run_tasks(
    tasks: Sequence[tuple[int, Callable[[], T]]], *, threads: int | None = None, progress: Progress | None = None
) -> Iterator[T]:
    """Yield the results of tasks in order, computed by threads or by joblib's backend if set.

    Parameters
    ----------
    tasks
        Pairs of an amount of work and a picklable function without side effects.
    threads, progress
        As for `run_chains`.

    Examples
    --------
    >>> list(run_tasks([(1, lambda: "a"), (1, lambda: "b")], threads=2))
    ['a', 'b']
    """
    total, done, next_slot = sum(work for work, _ in tasks), 0, 0
    if has_backend():
        for (work, _), result in zip(tasks, in_parallel(_call, ((task,) for _, task in tasks)), strict=True):
            done += work
            yield result
            if progress is not None:
                progress(done, total)
        return
    results: dict[int, T] = {}

    def keep(slot: int, task: Callable[[], T]) -> None:
        results[slot] = task()

    chains = [[(work, partial(keep, slot, task))] for slot, (work, task) in enumerate(tasks)]
    workers = min(thread_count(threads), len(chains))
    with closing(_inline(chains) if workers <= 1 else _threaded(chains, workers)) as finished:
        for work in finished:
            done += work
            if progress is not None:
                progress(done, total)
            while next_slot in results:
                yield results.pop(next_slot)
                next_slot += 1


def has_backend() -> bool:
    """Return whether the caller set a joblib backend, such as `with joblib.parallel_config("dask")`.

    Examples
    --------
    >>> has_backend()
    False
    """
    joblib = sys.modules.get("joblib")  # a caller who set one has imported it
    return joblib is not None and joblib.Parallel().n_jobs != 1


def in_parallel(task: Callable[..., T], work: Iterable[tuple[Any, ...]], jobs: int | None = None) -> Iterator[T]:
    """Yield the results of a task for each set of arguments, in order, through joblib if it is installed.

    Without `jobs` and without a joblib setting, calls run in this process, one after the other and on demand.

    Parameters
    ----------
    task
        A module-level function, so that it can be sent to other processes.
    work
        The arguments of each call.
    jobs
        The number of processes; by default joblib's own setting.

    Examples
    --------
    >>> list(in_parallel(pow, [(2, 3), (3, 2)]))
    [8, 9]
    """
    if (jobs in (None, 1) and not has_backend()) or find_spec("joblib") is None:
        yield from (task(*arguments) for arguments in work)
        return
    joblib = import_module("joblib")
    try:
        # joblib would consume a generator in its own thread, without the caller's listener and stop signal.
        yield from joblib.Parallel(n_jobs=jobs)(joblib.delayed(task)(*arguments) for arguments in list(work))
    except Exception as error:
        if not isinstance(error, PicklingError) and "serialize" not in str(error):  # Dask's message
            raise
        raise ConfigError(
            "a model, a candidate, the status quo or a utility cannot be sent to other processes (it cannot be "
            "pickled); set `jobs` to 1 and leave joblib's setting out, or give an estimator instead."
        ) from error


def _call(task: Callable[[], T]) -> T:
    return task()


def _inline(chains: Sequence[Iterable[Step]]) -> Generator[int, None, None]:
    for chain in chains:
        for work, step in chain:
            step()
            yield work


def _threaded(chains: Sequence[Iterable[Step]], threads: int) -> Generator[int, None, None]:
    """Yield the work of each finished step; closing the generator stops the threads."""
    waiting, lock, stop = iter(chains), Lock(), Event()
    finished: SimpleQueue[int | BaseException | None] = SimpleQueue()

    def work_through() -> None:
        try:
            while (chain := _take(waiting, lock)) is not None:
                for work, step in chain:
                    if stop.is_set():
                        return
                    step()
                    finished.put(work)
        except BaseException as error:  # re-raised in the caller's thread
            finished.put(error)
        finally:
            finished.put(None)

    workers = [Thread(target=work_through, daemon=True) for _ in range(threads)]
    try:
        for worker in workers:
            worker.start()
        running = threads
        while running:
            try:
                item = finished.get(timeout=0.25)  # without a timeout, Ctrl-C has no effect on Windows
            except Empty:
                continue
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item
    finally:
        stop.set()
        for worker in workers:
            if worker.ident is not None:
                worker.join()


def _take(waiting: Iterator[Iterable[Step]], lock: Lock) -> Iterable[Step] | None:
    with lock:
        return next(waiting, None)
