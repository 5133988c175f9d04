"""Waiting for the disk, many at once: the page of one person does not wait for a thread, only for the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool


class Syncs:
    """One sync at a time; everybody who comes meanwhile shares the next.

    Parameters
    ----------
    sync : returns when everything stored before the call is on the disk.
    """

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._waiting: list[asyncio.Future[None]] = []
        self._work: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Return when everything stored before this call is on the disk."""
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        self._waiting.append(mine)
        if self._work is None or self._work.done():
            self._work = loop.create_task(self._sync_all())
        await mine

    async def _sync_all(self) -> None:
        while self._waiting:
            served, self._waiting = self._waiting, []
            problem: Exception | None = None
            try:
                await run_in_threadpool(self._sync)
            except Exception as error:
                problem = error
            for one in served:
                if one.done():  # somebody went away
                    continue
                if problem is None:
                    one.set_result(None)
                else:
                    one.set_exception(problem)
