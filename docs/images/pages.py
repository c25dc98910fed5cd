"""Draws report.png: the page of the job smart-meters, as chromium shows it.

Usage: python3 docs/images/pages.py TIDETABLE, from the root of the repository, with a Python that has Playwright.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-headless-shell") or "chromium"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# Runs of consecutive days, so that there is something to see.
TIMES = [f"2018-01-{day:02}T01:15:00Z" for day in range(17, 21)]


def page(command, folder):
    flags = ["--root", f"{folder}/data", "--quiet"]
    for time in TIMES:
        subprocess.run([command, "run", "smart-meters", "--now", time, *flags], check=True)
    file = pathlib.Path(folder) / "page.html"
    subprocess.run([command, "report", "smart-meters", "--report", file, *flags], check=True, stdout=subprocess.DEVNULL)
    return file


def main():
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = page(sys.argv[1], folder)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        shown = browser.new_page(viewport={"width": 1100, "height": 1000})
        shown.goto(file.as_uri())
        shown.screenshot(path=pathlib.Path(__file__).with_name("report.png"))
        browser.close()


main()
