"""Waiting for the disk together: nobody is let go by a sync that began before they came."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

pytest.importorskip("fastapi", reason="the study server needs evenhand[study]")

from evenhand.study.store.sqlite import AwaitedSync


class Disk:
    """A disk that counts its syncs and takes its time; `stored` is what a sync finds when it begins."""

    def __init__(self, seconds: float = 0.05) -> None:
        self.seconds, self.stored, self.synced, self.syncs = seconds, 0, 0, 0
        self.at_once, self.most = 0, 0
        self.lock = threading.Lock()

    def sync(self) -> None:
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        found = self.stored
        time.sleep(self.seconds)
        with self.lock:
            self.synced, self.syncs, self.at_once = found, self.syncs + 1, self.at_once - 1


def test_many_share_a_sync_that_began_after_them() -> None:
    disk = Disk()
    syncs = AwaitedSync(disk.sync)

    async def store(after: float) -> None:
        await asyncio.sleep(after)
        disk.stored += 1
        mine = disk.stored
        await syncs.wait()
        assert disk.synced >= mine

    async def everybody() -> None:
        await asyncio.gather(*(store(number / 1_000) for number in range(200)))

    asyncio.run(everybody())
    assert disk.most == 1
    assert 2 <= disk.syncs <= 10


def test_a_failed_sync_is_told_to_all_who_waited_for_it_and_to_nobody_else() -> None:
    def fails() -> None:
        raise OSError("no space left")

    syncs = AwaitedSync(fails)

    async def both() -> list[object]:
        return list(await asyncio.gather(syncs.wait(), syncs.wait(), return_exceptions=True))

    assert [str(one) for one in asyncio.run(both())] == ["no space left"] * 2
    syncs._sync = lambda: None
    asyncio.run(syncs.wait())


def test_somebody_who_goes_away_does_not_hold_up_the_others() -> None:
    syncs = AwaitedSync(Disk().sync)

    async def some() -> None:
        gone = asyncio.ensure_future(syncs.wait())
        stays = asyncio.ensure_future(syncs.wait())
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.wait_for(stays, 5)
        assert gone.cancelled()

    asyncio.run(some())
