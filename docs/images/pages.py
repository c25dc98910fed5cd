"""Draws pages as chromium shows them: report.png, the report of the job smart-meters; compare.png and heatmaps.png, the comparisons of
docs/guide/choose-a-layout.md.

Usage: python3 docs/images/pages.py TIDETABLE, from the root of the repository, with a Python that has Playwright.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

IMAGES = pathlib.Path(__file__).parent
GUIDE = IMAGES.parent / "guide" / "choose-a-layout.md"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-headless-shell") or "chromium"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# A run for each day, so that there is something to see.
DAYS = range(2, 17)


def of_guide(name):
    """A file that the guide shows."""
    return re.search(rf"<!-- file {re.escape(name)} -->\n```toml\n(.*?)```", GUIDE.read_text(), re.S).group(1)


def report(command, folder):
    flags = ["--root", folder / "data", "--quiet"]
    for day in DAYS:
        when = ["--day", f"2018-01-{day:02}", "--now", f"2018-01-{day + 1:02}T01:15:00Z"]
        subprocess.run([command, "run", "smart-meters", *when, *flags], check=True)
    return written([command, "report", "smart-meters", *flags], folder / "report.html")


def balloons(command, folder):
    queries = folder / "questions.toml"
    queries.write_text(of_guide("questions.toml"))
    return written([command, "compare", "weather-balloons", "--queries", queries], folder / "compare.html")


def orders(command, folder):
    job = folder / "orders" / "job.toml"
    job.parent.mkdir()
    job.write_text(of_guide("jobs/orders/job.toml"))
    return written([command, "compare", job], folder / "orders.html")


def written(command, file):
    subprocess.run([*command, "--report", file], check=True, stdout=subprocess.DEVNULL)
    return file


def main():
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        command, folder = sys.argv[1], pathlib.Path(name)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        small = browser.new_page(viewport={"width": 720, "height": 660})
        small.goto(report(command, folder).as_uri())
        small.screenshot(path=IMAGES / "report.png")
        shown = browser.new_page(viewport={"width": 1280, "height": 1000})
        shown.goto(balloons(command, folder).as_uri())
        shown.screenshot(path=IMAGES / "compare.png")
        shown.goto(orders(command, folder).as_uri())
        shown.locator("#heatmaps").screenshot(path=IMAGES / "heatmaps.png")
        browser.close()


main()
