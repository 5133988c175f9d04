"""The engines: DuckDB for files, and remote engines (Spark, or a database read through ibis).

Audits are computed in the engine. A remote engine sends counts and sums, and for some statistics rows: at
most `MOST_ROWS` at a time, so that one machine can hold them.
"""

from __future__ import annotations

import atexit
import os
import re
import socket
import tempfile
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from evenhand.errors import ConfigError, DataError, EvenhandError, require_extra
from evenhand.settings import Settings

if TYPE_CHECKING:
    import duckdb
    import narwhals as nw
    from ibis import Table as IbisTable
    from pyspark.sql import DataFrame as SparkFrame

Frame: TypeAlias = "nw.DataFrame[Any] | nw.LazyFrame[Any]"
"""A narwhals frame, in memory or in an engine."""

MOST_ROWS = 5_000_000
"""The maximum number of rows per read from a remote engine; computations that need more are refused."""

MAX_CELLS = 1_000_000
"""The maximum number of combinations of groups, outcomes, decisions and bins per reduction."""


@dataclass(frozen=True)
class TransferLimit:
    """The maximum number of rows that a remote engine sends to this machine.

    Parameters
    ----------
    what : the description of the rows.
    most : the maximum number of rows.
    why : the consequence of more rows.
    """

    what: str
    most: int
    why: str

    @property
    def refuses(self) -> bool:
        """Whether more rows than `most` are refused."""
        return self.why == REFUSED


REFUSED = "refused, with what to do: audit a random sample, or columns saved as Parquet"
"""The consequence of too many rows if every row is needed."""

TRANSFER_LIMITS = {
    "a threshold that is a percentile": TransferLimit("the scores, once", MOST_ROWS, REFUSED),
    "a comparison of two audits by person": TransferLimit("everybody's groups and decisions, once", MOST_ROWS, REFUSED),
    "a pilot for power": TransferLimit("all rows of the pilot", MOST_ROWS, REFUSED),
    "`[models]`": TransferLimit(
        "nothing", 0, "refused: score the table where it is, and name the scores as predictions"
    ),
}
"""The transfer limits of operations other than audits; the limits of audits are in their descriptors."""

_REMOTE_ENGINES = {"pyspark": "Spark", "pyspark_connect": "Spark", "ibis": "the database", "sqlframe": "SQLFrame"}
PORTABLE_SQL_ENGINES = ("ibis", "pyspark_connect")
"""The narwhals names of engines that need portable SQL expressions."""

_MODULES = {"pyspark": "Spark", "py4j": "Spark", "grpc": "Spark", "ibis": "the database", "psycopg": "the database"}
# The cause at the end of Java's and gRPC's traces, and the cause of a failed Spark task.
_CAUSE = re.compile(r"^(?:(?:Caused by)?: (?:[\w$]+\.)+[\w$]+: |\s*details = \"?)(.+?)\"?$", re.MULTILINE)
_LOST = re.compile(r"most recent failure: .* executor \w+\): (?:(?:[\w$]+\.)+[\w$]+: )?(.+)")
_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]*://\S+|\bserver at \S+( \([^)]*\))?, port \d+|\b(user|role) \"[^\"]*\"", re.IGNORECASE
)
_MOST_IDLE = 4
_idle: list[duckdb.DuckDBPyConnection] = []  # databases not used by any table
atexit.register(_idle.clear)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_idle.clear)  # a forked process would lack their threads
_connections: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
_received: ContextVar[Received | None] = ContextVar("evenhand_rows_received", default=None)


def connect(memory_limit: str | None = None) -> duckdb.DuckDBPyConnection:
    """Return a connection to an in-process DuckDB database, without network access.

    The database serves one table at a time. Opening a database takes as long as counting a million rows, so databases
    are reused; their tables and views must be temporary. With a `memory_limit` such as "4GB" DuckDB keeps at most this
    in memory and writes the rest to temporary files.
    """
    database = None if memory_limit is not None else _idle_database()
    if database is None:
        database = _open_database(memory_limit)
    connection = database.cursor()
    connection.execute(
        "set enable_progress_bar = true; set enable_progress_bar_print = false; set preserve_insertion_order = false"
    )
    if memory_limit is None:
        weakref.finalize(connection, _leave_idle, database, os.getpid()).atexit = False
    _connections.add(connection)
    return connection


def _open_database(memory_limit: str | None) -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            # A rewritten file must be read again, even within the second that DuckDB's cache distinguishes.
            "enable_external_file_cache": "false",
            # Data that exceeds memory goes to the folder for temporary files, not into the working folder.
            "temp_directory": os.path.join(tempfile.gettempdir(), f"evenhand-{os.getpid()}"),
            # The type of a column of Python objects depends on all of them, not on the first thousand.
            "pandas_analyze_sample": str(2**31),
            **({} if memory_limit is None else {"memory_limit": memory_limit}),
        }
    )


def _idle_database() -> duckdb.DuckDBPyConnection | None:
    try:
        return _idle.pop()
    except IndexError:
        return None


def _leave_idle(database: duckdb.DuckDBPyConnection, process: int) -> None:
    """Keep a database for reuse, unless it was created in another process before a fork."""
    if process == os.getpid() and len(_idle) < _MOST_IDLE:
        _idle.append(database)


def share_read() -> float | None:
    """Return the share of the current DuckDB query that is finished, from 0 to 1; None if none is running.

    Examples
    --------
    >>> share_read() is None
    True
    """
    shares = [share for connection in tuple(_connections) for share in _percent(connection)]
    return max(shares) / 100.0 if shares else None


def _percent(connection: duckdb.DuckDBPyConnection) -> Iterator[float]:
    with suppress(Exception):  # the connection may be closed
        share = connection.query_progress()
        if share >= 0.0:
            yield share


class EngineSettings(Settings):
    """Settings of `[data]` for data in a remote engine."""

    engine: Literal["spark", "database"] = Field(
        description="Where the data is: `'spark'` (extra `spark`), with `source` the name of a table, or the path or "
        "glob of Parquet files; or `'database'` (extra `database`), with `source` the name of a table or view."
    )
    master: str | None = Field(
        None, description="The address of Spark: `'local[4]'`, `'spark://host:7077'`, `'sc://host'` for Spark Connect."
    )
    session: dict[str, str | int | float | bool] = Field({}, description="Settings of the Spark session, by name.")
    connection: str | None = Field(
        None, description="The environment variable that holds the address of the database, with its password."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.engine == "database":
            if self.connection is None:
                raise ValueError(
                    "a database needs `connection`, the environment variable that holds its address: DATABASE_URL"
                )
            if not re.fullmatch(r"[A-Za-z_]\w*", self.connection):
                raise ValueError(
                    "`connection` must be the name of an environment variable that holds the address, not the address: "
                    "a password does not belong into a file"
                )
        elif self.connection is not None:
            raise ValueError("`connection` is for a database; Spark has `master` and `session`")
        return self

    def open(self, source: str, folder: Path) -> SparkFrame | IbisTable:
        """Return the remote table named by a source."""
        return self._spark(source, folder) if self.engine == "spark" else self._database(source)

    def _spark(self, source: str, folder: Path) -> SparkFrame:
        """Return a table, or Parquet files, from a running or new Spark session."""
        require_extra("pyspark", "spark", "engine = 'spark'")
        with quiet(), reraise_engine_errors("Spark"):
            from pyspark.sql import SparkSession

            builder: Any = SparkSession.builder
            if self.master is not None and self.master.startswith("sc://"):
                _require_listener(self.master)
                builder = builder.remote(self.master)
            elif self.master is not None:
                builder = builder.master(self.master)
            for name, value in self.session.items():
                builder = builder.config(name, value)
            session = builder.getOrCreate()
            if re.search(r"[/*?\[]|\.parquet$", source):
                path = source if "://" in source else str((folder / source).absolute())
                table: SparkFrame = session.read.parquet(path)
            else:
                table = session.table(source)
            table.schema  # noqa: B018 makes Spark Connect report a missing table now
            return table

    def _database(self, source: str) -> IbisTable:
        """Return a table or view of a database, named `schema.name` or `name`."""
        require_extra("ibis", "database", "engine = 'database'")
        variable = str(self.connection)
        address = os.environ.get(variable)
        if not address:
            raise ConfigError(
                "`connection` is the environment variable {variable!r}, which is not set.", variable=variable
            )
        import ibis

        file = re.fullmatch(r"(?:sqlite|duckdb)://(/.+)", address)  # opening would create an empty file
        if file is not None and not Path(file[1]).is_file():
            raise ConfigError(
                "the database that {variable!r} names is a file that does not exist; check its address.",
                variable=variable,
            )
        schema, _, name = source.rpartition(".")
        try:
            database = ibis.connect(address)
            if hasattr(database, "con") and hasattr(database.con, "close"):
                weakref.finalize(database, database.con.close)  # when its last table is deleted
            return database.table(name, database=schema or None)
        except Exception as error:  # its text may contain the address
            kind = type(error).__name__
            if kind == "TableNotFound":
                raise ConfigError("the database has no table {source!r}; mend `source`.", source=source) from None
            scheme = re.match(r"([a-z]+)://", address)
            if isinstance(error, ImportError) and scheme is not None:
                raise ConfigError(
                    "the database that {variable!r} names needs a driver that is not installed; install "
                    "ibis-framework[{scheme}].",
                    variable=variable,
                    scheme=scheme[1],
                ) from None
            raise ConfigError(
                "the database that {variable!r} names could not be opened ({kind}); check its address and password.",
                variable=variable,
                kind=kind,
            ) from None


def _require_listener(address: str) -> None:
    """Raise if no Spark Connect server responds; Spark itself would retry for ten minutes."""
    parts = urlsplit(address)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 15002), timeout=10).close()
    except (OSError, ValueError):  # ValueError: the port is not a number
        raise ConfigError(
            "no Spark Connect server answers at the address that `master` gives; start it, or mend `master`."
        ) from None


def name_of(frame: Frame) -> str:
    """Return the engine's name as recorded in `run.json`.

    Examples
    --------
    >>> import narwhals as nw
    >>> name_of(nw.from_dict({"x": [1]}, backend="polars"))
    'polars'
    """
    name = str(frame.implementation.name).lower()
    return "spark" if name.startswith("pyspark") else name


def remote_engine_name(frame: Frame) -> str | None:
    """Return the name of the frame's remote engine; None if its rows are on this machine.

    Examples
    --------
    >>> import narwhals as nw
    >>> remote_engine_name(nw.from_dict({"x": [1]}, backend="polars")) is None
    True
    """
    return _REMOTE_ENGINES.get(str(frame.implementation.name).lower())


def needs_portable_sql(frame: Frame) -> bool:
    """Return whether a frame's engine needs portable SQL.

    Examples
    --------
    >>> import narwhals as nw
    >>> needs_portable_sql(nw.from_dict({"x": [1]}, backend="polars"))
    False
    """
    return str(frame.implementation.name).lower() in PORTABLE_SQL_ENGINES


def rows_allowed(frame: Frame) -> float:
    """Return the maximum number of rows per read; infinite for rows on this machine.

    Examples
    --------
    >>> import narwhals as nw
    >>> rows_allowed(nw.from_dict({"x": [1]}, backend="polars"))
    inf
    """
    return float("inf") if remote_engine_name(frame) is None else MOST_ROWS


def require_few_rows(frame: Frame, rows: int | None = None) -> None:
    """Raise if too many rows would be fetched to this machine; count them if `rows` is None.

    Examples
    --------
    >>> import narwhals as nw
    >>> require_few_rows(nw.from_dict({"x": [1]}, backend="polars"), 10**9)
    """
    engine = remote_engine_name(frame)
    if engine is None:
        return
    import narwhals as nw

    rows = int(collect(frame.lazy().select(n=nw.len()))["n"][0]) if rows is None else rows
    if rows > MOST_ROWS:
        raise DataError(
            "this needs every row, and the table has {rows:,}; {engine} sends at most {MOST_ROWS:,} to one "
            "machine: audit a random sample of the rows, or save the columns as Parquet and give their "
            "path, which DuckDB reads.",
            rows=rows,
            engine=engine,
            MOST_ROWS=MOST_ROWS,
        )


def collect(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Execute a lazy frame in its engine, record the transfer, and return the result."""
    with quiet():
        collected = frame.collect()
    counted = _received.get()
    if counted is not None:
        counted.append(len(collected))
        counted.size += int(collected.estimated_size())
        counted.values += len(collected) * len(collected.columns)
    return collected


class Received(list[int]):
    """The number of rows of each read, with the total `size` in bytes and the total number of `values`."""

    size: int = 0
    values: int = 0


@contextmanager
def count_transfers() -> Iterator[Received]:
    """Count the data sent to this process by the engines of lazy frames within the block.

    Examples
    --------
    >>> import narwhals as nw
    >>> with count_transfers() as rows:
    ...     _ = collect(nw.from_dict({"x": [1, 2]}, backend="polars").lazy())
    >>> rows, rows.size, rows.values
    ([2], 16, 2)
    """
    rows = Received()
    token = _received.set(rows)
    try:
        yield rows
    finally:
        _received.reset(token)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress PySpark's repeated warning about pandas 3, which does not concern evenhand."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


@contextmanager
def reraise_engine_errors(engine: str) -> Iterator[None]:
    """Raise a `ConfigError` for any engine error while opening data."""
    try:
        yield
    except EvenhandError:
        raise
    except Exception as error:
        raise ConfigError(
            "{engine} could not open the data: {value}",
            engine=engine,
            value=engine_message(error) or type(error).__name__,
        ) from None


def engine_message(error: BaseException) -> str | None:
    """Return an error of Spark or a database as one sentence without addresses; None for all other errors.

    Examples
    --------
    >>> engine_message(ValueError("no")) is None
    True
    """
    engine = _MODULES.get(type(error).__module__.partition(".")[0])
    if engine is None:
        return None
    text = str(error)
    if "JAVA_GATEWAY_EXITED" in text:
        return "Spark needs Java 17 or newer; install it, or name its folder in JAVA_HOME."
    causes = [cause for cause in _CAUSE.findall(text) if cause.strip()]
    lines = [*causes[-1:], *(line.strip() for line in text.splitlines() if line.strip()), type(error).__name__]
    worker = _LOST.search(lines[0])
    first = f"a worker failed: {worker[1]}" if worker is not None else lines[0]
    first = re.sub(r"\[[A-Z_.0-9]+\]\s*|\s*SQLSTATE: \w+.*$", "", first)
    return f"{engine} says: {_ADDRESS.sub('(address)', first)[:200].rstrip('. ')}."
