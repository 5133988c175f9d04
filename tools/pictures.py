"""Regenerate the pictures of the documentation from the demonstration: `python tools/pictures.py`.

It needs Chromium, and the extras `pdf` and `dev`. Look at the pictures before you commit them.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

import pypdfium2
from PIL import Image
from playwright.sync_api import sync_playwright

import evenhand as eh
from evenhand.cli.main import main

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
SCREENS = {"report.png": (1280, 1400), "report-phone.png": (390, 1450)}
PAGES = {"report-pdf-front.png": "Is there a problem?", "report-pdf-figures.png": "Values by race"}


def make(folder: Path) -> None:
    """Take pictures of a saved audit: the front page in two widths, and two pages of the PDF."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (width, height) in SCREENS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            page.goto((folder / "report.html").as_uri())
            photograph = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            small = photograph.resize((width * 25 // 32, height * 25 // 32), Image.Resampling.LANCZOS)
            _save(small, name)
        browser.close()
    files = eh.Audit.load(folder).save(folder, ["pdf"])
    document = pypdfium2.PdfDocument(files["report.pdf"])
    for name, title in PAGES.items():
        page = next(page for page in document if title in page.get_textpage().get_text_bounded())
        _save(page.render(scale=1.4).to_pil(), name)


def _save(picture: Image.Image, name: str) -> None:
    """Write a picture with few colours, to keep the documentation small."""
    few = picture.quantize(64, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(PICTURES / name, optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as out:
        try:
            main(["demo", "--quiet", "--out", out])
        except SystemExit as left:
            if left.code:
                sys.exit(left.code)
        make(Path(out))
