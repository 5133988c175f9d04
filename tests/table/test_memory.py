"""Files larger than the memory that is allowed: they are read all the same, and how far it has come can be asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any, cast

import duckdb
import pytest

import evenhand as eh
from evenhand.cli import console
from evenhand.errors import ConfigError, DataError
from evenhand.table.engines import connect, share_read

COLUMNS = "select md5(i::varchar) as id, 'g' || (i % 3) as g, hash(i) / 18446744073709551615.0 as s, i % 2 as y"
SMALL = {"g": ["a", "b"] * 20, "s": [0.1, 0.7] * 20, "y": [0, 1] * 20}
CHILD = """
import resource, sys
import evenhand as eh

def audit(data):
    table = eh.Table(data, groups="g", predictions="s", outcome="y", memory_limit="20MB")
    return eh.parity(table, metrics=["selection_rate", "tpr"])

audit({"g": ["a", "b"] * 20, "s": [0.1, 0.7] * 20, "y": [0, 1] * 20})  # what is imported and started is there
held = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData"))
most = 1024 * held + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
values = audit(sys.argv[1]).rows("values", metric="selection_rate")
print(sum(value.n for value in values if value.group in ("g0", "g1", "g2")))
"""


def write(path: Path, rows: int) -> int:
    duckdb.connect().execute(f"copy ({COLUMNS} from range({rows}) as t(i)) to '{path}' (format parquet)")
    return path.stat().st_size


def test_a_file_larger_than_the_memory_limit_is_audited(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    assert write(path, 600_000) > 20_000_000
    table = eh.Table(str(path), groups="g", predictions="s", outcome="y", memory_limit="20MB")
    values = eh.parity(table, metrics=["selection_rate"]).rows("values", metric="selection_rate")
    assert [value.n for value in values[:3]] == [200_000] * 3


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps such limits")
def test_a_file_larger_than_the_memory_that_is_left_is_audited(tmp_path: Path) -> None:
    path, room = tmp_path / "large.parquet", 100_000_000
    assert write(path, 3_000_000) > room
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(room)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "3000000", done.stderr


@pytest.mark.slow
def test_what_does_not_fit_goes_into_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "large.parquet"
    assert write(path, 3_000_000) > 100_000_000
    table = eh.Table(str(path), id="id", groups="g", predictions="s", outcome="y", memory_limit="100MB")
    assert table.rows == 3_000_000


def test_too_little_memory_is_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    write(path, 200_000)
    with pytest.raises(DataError, match=r"needs more memory.*give a larger memory_limit"):
        eh.Table(str(path), id="id", groups="g", predictions="s", outcome="y", memory_limit="2MB")


@pytest.mark.parametrize("limit", ["4", "4 gigabytes", "-1GB", "1GB; drop", 4])
def test_a_limit_that_is_no_size_is_refused(limit: object) -> None:
    with pytest.raises(ConfigError, match="memory_limit"):
        eh.Table(SMALL, groups="g", predictions="s", memory_limit=limit)  # type: ignore[arg-type]


def test_the_limit_is_no_part_of_the_results(tmp_path: Path) -> None:
    path = tmp_path / "small.parquet"
    write(path, 100)
    tables = [eh.Table(str(path), groups="g", predictions="s", memory_limit=limit) for limit in (None, "100MB")]
    first, second = (eh.audit(table, parity={"metrics": ["selection_rate"]}).to_json() for table in tables)
    assert first == second


def test_how_far_a_query_has_come_can_be_asked() -> None:
    assert share_read() is None
    connection, shares = connect(), []
    query = connection.sql("select sum(sqrt(i + j)) from range(20000) a(i), range(1500) b(j)")
    reader = Thread(target=query.fetchall)
    reader.start()
    while reader.is_alive():
        shares.append(share_read())
        reader.join(0.005)
    known = [share for share in shares if share is not None]
    assert known
    assert all(0.0 <= share <= 1.0 for share in known)
    assert share_read() is None


def test_the_terminal_tells_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now, share = [0.0], [0.0]
    monkeypatch.setattr(console, "perf_counter", lambda: now[0])
    monkeypatch.setattr(console, "share_read", lambda: share[0])
    column = console._Reading()
    shown = []
    for now[0], share[0] in ((0, 0.0), (1, 0.1), (10, 0.25), (20, 0.5), (21, 0.01), (22, 0.02), (31, 0.5)):
        shown.append(str(column.render(cast(Any, None))))
    assert shown == [
        "",
        "",
        "25% read, about 0:00:30 left of this step",
        "50% read, about 0:00:20 left of this step",
        "",  # another query
        "",
        "50% read, about 0:00:10 left of this step",
    ]
