"""The published data sets: their sources, checksums and downloads.

The package contains no published data. `fetch` takes a file from the folder named by the environment variable
EVENHAND_DATA if it exists there, and otherwise downloads it once into a cache; its checksum is always verified. The
survey whose files a user must download from its publisher is in `load_shed`.
"""

from __future__ import annotations

import glob
import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evenhand.datasets._synthetic import Columns
from evenhand.errors import ConfigError, DataError, EvenhandError, did_you_mean

DATA_VARIABLE = "EVENHAND_DATA"
"""The environment variable that names a folder of files to use instead of downloads."""

CACHE_VARIABLE = "EVENHAND_CACHE"
"""The environment variable that names the folder for downloads, instead of the user's cache folder."""


@dataclass(frozen=True, kw_only=True)
class PublishedData:
    """A published data set with its source, checksums and citation.

    Attributes
    ----------
    name : str
        The name to pass to `fetch`.
    title : str
        A short description of the data.
    url : str
        The publisher's file, at a fixed version.
    sha256 : str
        The SHA-256 of that file.
    file_name : str
        The name of the download in the cache.
    local_path : str
        The possible location of the file below the folder named by EVENHAND_DATA.
    local_sha256 : str
        The SHA-256 of that local file, possibly a smaller or compressed form of the publisher's.
    licence : str
        The right to use and pass on the data, as far as known.
    citation : str
        How to cite the data.
    rows : int
        The number of rows.
    """

    name: str
    title: str
    url: str
    sha256: str
    file_name: str
    local_path: str
    local_sha256: str
    licence: str
    citation: str
    rows: int


_DRESSEL_FARID_FILES = (
    (
        "cases",
        "The 1,000 defendants of Dressel and Farid's study",
        "BROWARD_CLEAN_SUBSET.csv",
        "4511d80cb41b2d5c2248a54230db0c1603546fd31b6ec9d376a7e9e37d2af1db",
        "broward_clean_subset.csv.gz",
        "4085df6aa994035ec5b1e0b6ec4576b6bd6e5d0ba166ea0a810305ea0a4df687",
    ),
    (
        "no_race",
        "Predictions of 400 people who were not told the defendants' race, by Dressel and Farid",
        "MTURK_NO_RACE.csv",
        "1475ed363e4a183d5fee9a3d2fa93267de508ae0b4453c538ccfe4928bc5e1d6",
        "mturk_no_race_matrix.csv.gz",
        "fe5f6577e95407743471e138533edb6b639a28e92e526bb6f1724d6bef5c4dcc",
    ),
    (
        "race",
        "Predictions of 400 people who were told the defendants' race, by Dressel and Farid",
        "MTURK_RACE.csv",
        "4dfe46e9cd958dcb0e032a4dfe6656e4cf5cb4bcd1c3a4b4262d9949235f6ce3",
        "mturk_race_matrix.csv.gz",
        "61bf7233474d8f88d03d4f4ca37496dabc717fe99a9eda044cb315f29774affd",
    ),
)


_NO_LICENCE = "The publisher states no licence: use it for checks, do not pass it on."
_OBERMEYER = (
    "Z. Obermeyer, B. Powers, C. Vogeli and S. Mullainathan (2019). Dissecting racial bias in an algorithm used to "
    "manage the health of populations. Science 366, 447-453. https://gitlab.com/labsysmed/dissecting-bias"
)

_PUBLISHED = (
    PublishedData(
        name="compas",
        title="ProPublica's COMPAS scores and two-year recidivism, Broward County, Florida, 2013-2014",
        url="https://raw.githubusercontent.com/propublica/compas-analysis/"
        "bafff5da3f2e45eca6c2d5055faad269defd135a/compas-scores-two-years.csv",
        sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
        file_name="compas-scores-two-years.csv",
        local_path="compas/propublica_two_years_deidentified.csv.gz",
        local_sha256="7a0ad877ee8baf4f2e0f9c72694d135993309f2ebe5f5245133aa02733c939f9",
        licence="Public court records; the publisher states no licence. The publisher's file holds names, birth "
        "dates and case numbers: do not pass it on.",
        citation="J. Larson, S. Mattu, L. Kirchner and J. Angwin (2016). How We Analyzed the COMPAS Recidivism "
        "Algorithm. ProPublica. https://github.com/propublica/compas-analysis",
        rows=7214,
    ),
    *(
        PublishedData(
            name=f"dressel_farid_{part}",
            title=title,
            url="https://raw.githubusercontent.com/polinapolina/sicss18_fairml/"
            f"03c2d1817d92c222aefc9638bb6a42c5c3428e0f/misc/allData/{file_name}",
            sha256=sha256,
            file_name=f"dressel_farid_{file_name}",
            local_path=f"dressel_farid/{local_name}",
            local_sha256=local_sha256,
            licence="Published with the article for download; no licence is stated. Do not pass it on.",
            citation="J. Dressel and H. Farid (2018). The accuracy, fairness, and limits of predicting recidivism. "
            "Science Advances 4, eaao5580. https://doi.org/10.1126/sciadv.aao5580",
            rows=1000,
        )
        for part, title, file_name, sha256, local_name, local_sha256 in _DRESSEL_FARID_FILES
    ),
    PublishedData(
        name="hospital",
        title="Risk scores, costs and chronic illnesses of hospital patients (synthetic, made from real records)",
        url="https://gitlab.com/labsysmed/dissecting-bias/-/raw/"
        "daceb25bba00e65d7b05882f049e229a8bedb60c/data/data_new.csv",
        sha256="5341f90f3a1d330557620af1c734e552abe0ad57053055dd13dbccc6d8384d74",
        file_name="hospital-data-new.csv",
        local_path="obermeyer/data_new.csv",
        local_sha256="5341f90f3a1d330557620af1c734e552abe0ad57053055dd13dbccc6d8384d74",
        licence=_NO_LICENCE,
        citation=_OBERMEYER,
        rows=48784,
    ),
    PublishedData(
        name="hospital_holdout",
        title="The authors' hold-out of the hospital patients, with the predictions of their lasso models",
        url="https://gitlab.com/labsysmed/dissecting-bias/-/raw/"
        "f7a3b4d86e0dd3c71b1bd28a6706dc5fd85548ad/results/model_lasso_predictors.csv",
        sha256="58cf1685126de0ae4648640d7fc279016ed0c5fc8ab76ed90a3d569cb988c56b",
        file_name="hospital-holdout-lasso.csv",
        local_path="obermeyer/holdout_lasso_predictions.csv.gz",
        local_sha256="16165b0edfd7337434f98a26788cb616df40db3275e9c73be49c8eb917ad5cfa",
        licence=_NO_LICENCE,
        citation=_OBERMEYER,
        rows=16099,
    ),
)


def available() -> tuple[PublishedData, ...]:
    """Return the published data sets available to `fetch`.

    Examples
    --------
    >>> {data.name: data.rows for data in available()}["compas"]
    7214
    """
    return _PUBLISHED


def fetch(name: str) -> Path:
    """Return the path of a published data set's file, downloaded and verified if necessary.

    Parameters
    ----------
    name : str
        The name of the data set, one of `available()`.

    Returns
    -------
    pathlib.Path
        The file in the folder named by EVENHAND_DATA if it exists there. Otherwise the publisher's file in the cache
        (the folder named by EVENHAND_CACHE, or the user's cache folder for evenhand), downloaded if missing.

    Raises
    ------
    ConfigError
        No data set has this name.
    DataError
        The file differs from the published one in its SHA-256.
    EvenhandError
        The file could not be downloaded; the message says how to get it manually and where to put it.

    Notes
    -----
    The file may contain more than an audit needs, even personal data; the loaders (`load_compas`) keep only the
    documented columns.

    Examples
    --------
    >>> fetch("compass")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: there is no data set 'compass'; did you mean 'compas'?
    """
    by_name = {data.name: data for data in _PUBLISHED}
    if name not in by_name:
        raise ConfigError("there is no data set {name!r}; {hint}", name=name, hint=did_you_mean(name, by_name))
    return _local_file(by_name[name]) or _cached_file(by_name[name])


def at_hand(name: str) -> bool:
    """Return whether `fetch` has a file without a download, below EVENHAND_DATA or in the cache.

    Examples
    --------
    >>> isinstance(at_hand("compas"), bool)
    True
    """
    data = {data.name: data for data in _PUBLISHED}[name]
    return _local_file(data) is not None or (_cache_folder() / data.file_name).is_file()


def query_file(path: Path, query: str, **parameters: object) -> Columns:
    """Return the columns of a query on a CSV file `$path`, compressed or not, with missing values masked."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(query, {"path": glob.escape(str(path)), **parameters})
        columns: Columns = connection.fetchnumpy()
        return columns


def _local_file(data: PublishedData) -> Path | None:
    """Return the path of the verified file below EVENHAND_DATA, or None."""
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        return None
    path = Path(folder).expanduser() / data.local_path
    if not path.is_file():
        return None
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != data.local_sha256:
        raise DataError(
            "{path} is not the file that was expected for '{name}': its SHA-256 is {digest}, not "
            "{expected}; replace it, or unset {variable} to download the publisher's file.",
            path=path,
            name=data.name,
            digest=digest,
            expected=data.local_sha256,
            variable=DATA_VARIABLE,
        )
    return path


def _cached_file(data: PublishedData) -> Path:
    """Return the path of the publisher's file in the cache, downloaded if necessary."""
    import pooch

    folder = _cache_folder()
    try:
        with _quiet(pooch.get_logger()):
            path = pooch.retrieve(
                url=data.url, known_hash=f"sha256:{data.sha256}", fname=data.file_name, path=folder, progressbar=False
            )
    except OSError as error:
        raise EvenhandError(_how_to_get_by_hand(data, folder, error)) from error
    except ValueError as error:
        raise DataError(
            "the file downloaded for '{name}' from {url} is not the one that was published: its SHA-256 is "
            "not {sha256}; nothing was kept. A proxy may have changed it: try another network, or set "
            "{DATA_VARIABLE} to a folder that holds {local_path}.",
            name=data.name,
            url=data.url,
            sha256=data.sha256,
            DATA_VARIABLE=DATA_VARIABLE,
            local_path=data.local_path,
        ) from error
    return Path(path)


def _cache_folder() -> Path:
    import pooch

    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen).expanduser() if chosen else Path(pooch.os_cache("evenhand"))


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Suppress the downloader's log messages below warnings."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _how_to_get_by_hand(data: PublishedData, folder: Path, error: OSError) -> str:
    local = os.environ.get(DATA_VARIABLE)
    local_file = Path(local).expanduser() / data.local_path if local else None
    looked = f"{local_file} does not exist" if local_file else f"{DATA_VARIABLE} is not set"
    return (
        f"could not get the data set '{data.name}': {looked}, and the download of {data.url} into {folder} "
        f"failed ({_root_cause(error)}). To get it by hand, download that address on a machine "
        f"with a network and save it as {folder / data.file_name} (SHA-256 {data.sha256}), or set "
        f"{DATA_VARIABLE} to a folder that holds {data.local_path}."
    )


def _root_cause(error: BaseException) -> str:
    """Return the innermost cause of an error."""
    while error.__context__ is not None:
        error = error.__context__
    return f"{type(error).__name__}: {error}"
