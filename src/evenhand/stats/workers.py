"""Threads for compiled kernels: fixed chains of steps, so that the number of threads cannot change a result."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread

from evenhand.errors import require_at_least

Progress = Callable[[int, int], None]
Step = tuple[int, Callable[[], None]]  # how much work it is, and the work


def thread_count(threads: int | None) -> int:
    """Return how many threads to use: those asked for, or one for each core this process may use.

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
    """Run chains of steps: the steps of a chain one after the other, different chains side by side.

    Steps must release the interpreter lock to gain from threads. Progress is reported in the thread of the
    caller; what it raises, a failing step or Ctrl-C ends the run as soon as the steps under way are done.

    Parameters
    ----------
    chains
        Steps as pairs of their work and a function. A chain writes only to what is its own.
    total
        The work of all steps together.
    threads
        Number of threads; by default one for each core.
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
    wanted = min(thread_count(threads), len(chains))
    done = 0
    with closing(_inline(chains) if wanted <= 1 else _threaded(chains, wanted)) as finished:
        for work in finished:
            done += work
            if progress is not None:
                progress(done, total)


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
        except BaseException as error:  # it belongs to the caller's thread
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
                item = finished.get(timeout=0.25)  # a wait without end would not see Ctrl-C on Windows
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
