"""The registry of published data: which file is used, how it is checked, and what is said when it fails."""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pooch
import pytest
import requests

from evenhand.datasets import available, fetch, registry
from evenhand.errors import ConfigError, DataError, EvenhandError

CONTENT = b"id,sex\n1,Male\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, no local data, and a published file that is `CONTENT`."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("EVENHAND_CACHE", str(folder))
    monkeypatch.delenv("EVENHAND_DATA", raising=False)
    entry = replace(available()[0], sha256=sha256(CONTENT), local_sha256=sha256(CONTENT))
    monkeypatch.setattr(registry, "_PUBLISHED", (entry,))
    return folder


def download(monkeypatch: pytest.MonkeyPatch, content: bytes | Exception) -> list[str]:
    """Replace the download by one that writes `content` or raises it; return the addresses asked for."""
    asked: list[str] = []

    def write(url: str, output_file: Any, *_: Any) -> None:
        asked.append(url)
        if isinstance(content, Exception):
            raise content
        Path(output_file).write_bytes(content)

    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *_, **__: write)
    return asked


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_entries_are_complete_and_pinned() -> None:
    names = [data.name for data in available()]
    assert len(set(names)) == len(names)
    assert {"compas", "dressel_farid_cases", "dressel_farid_no_race", "dressel_farid_race"} <= set(names)
    for data in available():
        assert data.url.startswith("https://")
        assert re.search(r"/[0-9a-f]{40}/", data.url), "the address must name a commit"
        assert re.fullmatch(r"[0-9a-f]{64}", data.sha256)
        assert re.fullmatch(r"[0-9a-f]{64}", data.local_sha256)
        assert not Path(data.local_path).is_absolute()
        assert data.title
        assert data.licence
        assert data.citation
        assert data.rows > 0
        with pytest.raises(FrozenInstanceError):
            data.rows = 0  # type: ignore[misc]


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="there is no data set 'compsa'; did you mean 'compas'"):
        fetch("compsa")


def test_the_file_below_evenhand_data_comes_first(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = download(monkeypatch, ConnectionError("no network"))
    local = put(tmp_path / "data" / available()[0].local_path, CONTENT)
    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path / "data"))
    assert fetch("compas") == local
    assert asked == []


def test_a_changed_local_file_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    local = put(tmp_path / "data" / available()[0].local_path, CONTENT + b"2,Female\n")
    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path / "data"))
    with pytest.raises(DataError, match=r"its SHA-256 is .* unset EVENHAND_DATA") as caught:
        fetch("compas")
    assert str(local) in str(caught.value)


@pytest.mark.parametrize("local_folder", [None, "", "elsewhere"])
def test_downloads_once_when_there_is_no_local_file(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, local_folder: str | None
) -> None:
    if local_folder is not None:
        monkeypatch.setenv("EVENHAND_DATA", str(tmp_path / local_folder) if local_folder else "")
    asked = download(monkeypatch, CONTENT)
    path = fetch("compas")
    assert path == cache / "compas-scores-two-years.csv"
    assert path.read_bytes() == CONTENT
    assert fetch("compas") == path
    assert asked == [available()[0].url]


def test_a_file_put_into_the_cache_by_hand_is_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = download(monkeypatch, requests.ConnectionError("no network"))
    placed = put(cache / available()[0].file_name, CONTENT)
    assert fetch("compas") == placed
    assert asked == []


def test_a_damaged_file_in_the_cache_is_replaced(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    download(monkeypatch, CONTENT)
    put(cache / available()[0].file_name, b"half a fi")
    assert fetch("compas").read_bytes() == CONTENT


def test_no_network_says_what_was_tried_and_what_to_do(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    download(monkeypatch, requests.ConnectionError("Name or service not known"))
    with pytest.raises(EvenhandError) as caught:
        fetch("compas")
    message = str(caught.value)
    data = available()[0]
    assert "could not get the data set 'compas': EVENHAND_DATA is not set" in message
    assert "ConnectionError: Name or service not known" in message
    for needed in (data.url, data.sha256, str(cache / data.file_name), data.local_path):
        assert needed in message


def test_no_network_names_the_local_file_that_was_missing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    download(monkeypatch, requests.Timeout("read timed out"))
    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path))
    with pytest.raises(EvenhandError) as caught:
        fetch("compas")
    assert f"{tmp_path / available()[0].local_path} does not exist" in str(caught.value)


def test_a_changed_download_is_refused_and_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    download(monkeypatch, b"<html>please log in</html>")
    with pytest.raises(DataError, match="not the one that was published: its SHA-256 is not"):
        fetch("compas")
    assert list(cache.iterdir()) == []


def test_the_downloader_is_quiet_and_its_logger_restored(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    download(monkeypatch, CONTENT)
    logger: logging.Logger = pooch.get_logger()
    before = logger.level
    fetch("compas")
    assert logger.level == before
    assert capfd.readouterr() == ("", "")


def test_the_default_cache_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVENHAND_CACHE", raising=False)
    assert registry._cache_folder() == Path(pooch.os_cache("evenhand"))
