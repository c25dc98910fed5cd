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
# A run for each day, so that there is something to see.
DAYS = range(2, 17)


def page(command, folder):
    flags = ["--root", f"{folder}/data", "--quiet"]
    for day in DAYS:
        when = ["--day", f"2018-01-{day:02}", "--now", f"2018-01-{day + 1:02}T01:15:00Z"]
        subprocess.run([command, "run", "smart-meters", *when, *flags], check=True)
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
