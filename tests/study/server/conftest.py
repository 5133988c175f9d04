"""Studies on a server in this process, and browsers that talk to it: one cookie jar and one address each."""

from __future__ import annotations

import asyncio
import html
import math
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher
from fastapi import FastAPI

import evenhand as eh
from evenhand.study.flow.design import Design, load_design
from evenhand.study.server.app import create_app
from evenhand.study.store import Store, Study, open_store
from evenhand.study.template import study_template

RESEARCHER, PASSWORD = "anna", "correct horse battery"
CASES = 43
CRITICS = '\n[disagreement]\nstakeholder = "kind"\n'
ABOUT = """
[about]
text = "We ask this to see whether patients and surgeons judge <differently>."
consent = "You may store what I say about myself."
[[about.questions]]
name = "kind"
question = "Which of these are you?"
choices = ["patient", "donor", "surgeon"]
[[about.questions]]
name = "age"
question = "How old are you?"
range = [18, 99]

[recruitment]
quotas = { kind = { surgeon = 1 } }
turned_away_url = "https://recruiter.example/screened"
"""


@dataclass
class Browser:
    """A browser: keeps cookies, follows no redirect by itself, and can fill in every form of a study."""

    app: FastAPI
    address: str = "203.0.113.7"
    base: str = "http://study.example"
    jar: httpx.Cookies = field(default_factory=httpx.Cookies)

    def send(self, method: str, url: str, **options: Any) -> httpx.Response:
        return asyncio.run(self._send(method, url, options))

    async def _send(self, method: str, url: str, options: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(self.address, 4711))
        async with httpx.AsyncClient(transport=transport, base_url=self.base, cookies=self.jar) as client:
            response = await client.request(method, url, **options)
            self.jar = client.cookies
        return response

    def get(self, url: str, **options: Any) -> httpx.Response:
        return self.send("GET", url, **options)

    def post(self, url: str, data: dict[str, Any] | None = None, **options: Any) -> httpx.Response:
        return self.send("POST", url, data=data or {}, **options)

    def form(self, url: str) -> dict[str, str]:
        """Return the hidden fields of the form on a page; of several forms, those of the last."""
        page = self.get(url)
        assert page.status_code == 200, (url, page.status_code)
        found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text)
        return {name: html.unescape(value) for name, value in found}

    def begin(self, query: str = "") -> httpx.Response:
        """Come by the link and agree to take part."""
        self.get(f"/{query}")
        return self.post("/consent", {**self.form("/consent"), "agree": "yes"})

    def tell(self, **about: str) -> httpx.Response:
        """Say something about oneself, where the study asks."""
        told = {f"about_{name}": value for name, value in about.items()}
        return self.post("/about", {**self.form("/about"), **told})

    def fields(self, url: str, **changes: Any) -> dict[str, Any]:
        """Return what a willing person sends with the form of a step."""
        choices = re.findall(r'name="choice"[^>]*value="([^"]*)"', self.get(url).text)
        right = [choice for choice in choices if choice in ("Blue", "Chair", "Seven")]
        return {
            **self.form(url),
            "trajectory": "2",
            "aggregate": "5",
            "overall": "3",
            "factors": "trajectory",
            "predicted": "60",
            "risk": "40",
            "answer": "disagree",
            "choice": right[0] if right else "",
            "reason": "",
            **changes,
        }

    def answer(self, url: str, **changes: Any) -> httpx.Response:
        return self.post(url, self.fields(url, **changes))

    def finish(self, **changes: Any) -> None:
        """Answer every step up to the end."""
        url = self.get("/").headers["location"]
        while url.startswith("/step/"):
            url = self.answer(url, **changes).headers["location"]
        assert url == "/done"

    def token(self, url: str) -> str:
        """Return the token against forged requests that the form of an address needs."""
        page = "/researcher" if url.startswith("/researcher") else "/consent" if url == "/consent" else "/step/0"
        return self.form(url if url.endswith("login") else page)["csrf"]

    def draft(self, url: str, fields: dict[str, Any], token: str | None) -> httpx.Response:
        headers = {} if token is None else {"x-csrf-token": token}
        return self.send("PUT", url, json={"fields": fields}, headers=headers)

    def login(self, name: str = RESEARCHER, password: str = PASSWORD) -> httpx.Response:
        form = self.form("/researcher/login")
        return self.post("/researcher/login", {**form, "name": name, "password": password})


@dataclass
class Served:
    """A study that is being served."""

    design: Design
    study: Study
    app: FastAPI
    base: str

    def browser(self, address: str = "203.0.113.7") -> Browser:
        return Browser(self.app, address, self.base)

    def researcher(self) -> Browser:
        """Return the browser of a researcher who is logged in."""
        browser = self.browser("198.51.100.1")
        assert browser.login().headers["location"] == "/researcher"
        return browser


Serve = Callable[..., Served]


@pytest.fixture(scope="session")
def password_hash() -> str:
    """Return a hash that is quick to check; how slow ours are is tested where it matters."""
    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)


@pytest.fixture(scope="session")
def effort_design(tmp_path_factory: pytest.TempPathFactory) -> Design:
    folder = tmp_path_factory.mktemp("effort")
    table = eh.Table(
        eh.datasets.make_households(1_500, seed=1), id="household", groups="race", predictions={"m": "risk_logistic"}
    )
    made = eh.study.design_sets(table, [f"income_{year}" for year in range(2019, 2023)], sets=3, step=100)
    for name in ("income", "arrests"):
        made.save(folder / f"{name}.json")
    text = study_template("effort").replace("sets_per_person = 3", "sets_per_person = 1")
    return _loaded(folder, text.replace("after = 2", "after = 1").replace("after = 3", "after = 1"))


@pytest.fixture(scope="session")
def feedback_design(tmp_path_factory: pytest.TempPathFactory) -> Design:
    folder = tmp_path_factory.mktemp("feedback")
    rows = [f"{i},{'high' if i % 2 else 'low'},{'ab'[i % 3 == 0]},{20 + i},x,{i % 4}" for i in range(CASES)]
    (folder / "cases.csv").write_text("\n".join(["case,label,race,age,charge,priors", *rows]), encoding="utf-8")
    text = study_template("disagreement").replace("per_critic = 50", "per_critic = 10")
    return _loaded(folder, text.replace("per_case = 20", "per_case = 3"))


@pytest.fixture(scope="session")
def critics_design(tmp_path_factory: pytest.TempPathFactory) -> Design:
    """A disagreement study that asks who is speaking, and takes one surgeon."""
    folder = tmp_path_factory.mktemp("critics")
    rows = [f"{i},{'high' if i % 2 else 'low'},{'ab'[i % 3 == 0]},{20 + i},x,{i % 4}" for i in range(CASES)]
    (folder / "cases.csv").write_text("\n".join(["case,label,race,age,charge,priors", *rows]), encoding="utf-8")
    text = study_template("disagreement").replace("per_critic = 50", "per_critic = 10")
    text = text.replace("per_case = 20", "per_case = 3").replace("\n[disagreement]\n", CRITICS)
    return _loaded(folder, text.replace("[payment]", f"{ABOUT}\n[payment]"))


def _loaded(folder: Path, text: str) -> Design:
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return load_design(eh.study.read_study(folder / "study.toml"))


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "study.db"
    open_store(str(path)).close()
    return path


@pytest.fixture
def store(tmp_path: Path, empty_database: Path) -> Iterator[Store]:
    path = shutil.copy(empty_database, tmp_path / "study.db")
    with open_store(str(path)) as opened:
        yield opened


@pytest.fixture(scope="session")
def make(password_hash: str) -> Serve:
    """Serve a design from a store, with one researcher."""

    def start(store: Store, design: Design, *, https: bool = False, rate: float = math.inf, **options: Any) -> Served:
        study = store.register(design)
        if not study.researchers.names():
            study.researchers.set_password(RESEARCHER, password_hash)
        app = create_app(design, study, https=https, rate=rate, **options)
        return Served(design, study, app, "https://study.example" if https else "http://study.example")

    return start


@pytest.fixture
def serve(store: Store, make: Serve) -> Serve:
    """Serve a design from a store of this test's own; called again, it is a restart of the server."""
    return partial(make, store)


@pytest.fixture
def serve_copy(tmp_path: Path, make: Serve) -> Iterator[Callable[[Path, Design], Served]]:
    """Serve a design from a copy of a database."""
    with ExitStack() as stores:

        def start(database: Path, design: Design) -> Served:
            copy = shutil.copy(database, tmp_path / "copy.db")
            return make(stores.enter_context(open_store(str(copy))), design)

        yield start


@pytest.fixture
def effort(serve: Serve, effort_design: Design) -> Served:
    return serve(effort_design)


@pytest.fixture
def feedback(serve: Serve, feedback_design: Design) -> Served:
    return serve(feedback_design)


@pytest.fixture
def critics(serve: Serve, critics_design: Design) -> Served:
    return serve(critics_design)


@pytest.fixture
def chunks() -> Callable[[bytes, int], AsyncIterator[bytes]]:
    """Return a body that is sent in parts, without saying how long it will be."""

    async def parts(part: bytes, times: int) -> AsyncIterator[bytes]:
        for _ in range(times):
            yield part

    return parts
