"""Opens pages in chromium and compares what it shows with what they were made from.

Usage: python3 browser.py CHROMIUM FOLDER, where FOLDER has NAME.html and NAME.json for each page.
"""

import base64
import bisect
import json
import math
import pathlib
import random
import struct
import sys
import zlib

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SIZES = [(1440, 900), (390, 844)]
FORMULA_HOURS = 730


def open_page(browser, file, size=SIZES[0], theme="light", script=True):
    """A page, and the list of what went wrong in it."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, java_script_enabled=script)
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(f"console: {message.type} {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    allowed = ("data:", "blob:", file.as_uri())
    page.on("request", lambda request: request.url.startswith(allowed) or wrong.append(f"request: {request.url}"))
    page.goto(file.as_uri())
    if script:
        maps = page.locator("#maps").count()
        page.wait_for_selector("html.drawn" if maps else "html.script", state="attached")
    return page, wrong


def element(page, name):
    return json.loads(page.locator(f"#{name}").text_content())


def values_of(item):
    data = zlib.decompress(base64.b64decode(item["values"]), -15)
    if item["encoding"] == "f64":
        return list(struct.unpack(f"<{len(data) // 8}d", data))
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value, shift = 0, 0
    return values


def covered(pixel, pixels, least, most, count):
    """Indexes of the cells under a pixel: all of which it shows a part."""
    step = (most - least) / pixels
    first = math.floor(least + pixel * step + 1e-6)
    end = max(math.ceil(least + (pixel + 1) * step - 1e-6), first + 1)
    return range(max(first, 0), min(end, count))


# Read in one piece: many reads of a canvas are a warning on the console.
PIXELS = """([at, places]) => {
  const { plot } = tidetable.charts[at], { left, top, width, height } = plot.bbox;
  const { data } = plot.ctx.getImageData(left, top, width, height);
  const pixel = ([x, y]) => {
    const from = (Math.floor(y * height) * width + Math.floor(x * width)) * 4;
    return [...data.slice(from, from + 4)];
  };
  return { width, height, x: [plot.scales.x.min, plot.scales.x.max], y: [plot.scales.y.min, plot.scales.y.max], colours: places.map(pixel) };
}"""


def check_pixels(page, given, chance, whole=True):
    stored = element(page, "maps")
    palette = [((rgb >> 16) & 255, (rgb >> 8) & 255, rgb & 255, 255) for rgb in stored["palette"]]
    for at, (item, origin) in enumerate(zip(stored["maps"], given["heatmaps"], strict=True)):
        values = values_of(item)
        [of_origin] = origin["values"].values()
        assert values == of_origin, f"values of {item['layout']} in the page are others than those given"
        buckets, start, length = len(item["keys"]), item["start"] / 1e6, item["slice"] / 1e6
        places = [(chance.random(), chance.random()) for _ in range(100)]
        found = page.evaluate(PIXELS, [at, places])
        lit = 0
        for (x, y), colour in zip(places, found["colours"], strict=True):
            times = [(bound - start) / length for bound in found["x"]]
            slices = covered(math.floor(x * found["width"]), found["width"], *times, item["slices"])
            keys = covered(math.floor(y * found["height"]), found["height"], *found["y"], buckets)
            most = max((values[s * buckets + b] for s in slices for b in keys), default=0)
            level = bisect.bisect_right(item["least"], most)
            assert tuple(colour) == palette[level], f"{item['layout']} at {x}, {y}: {colour} is not {palette[level]} of {most}"
            lit += level > 0
        # A part of a map may be empty.
        assert lit or not whole or not any(values), f"{item['layout']}: no pixel of 100 shows a value"


def check_axe(page, where):
    found = Axe().run(page)
    assert found.violations_count == 0, f"{where}: {found.generate_report()}"


# Entries of legends that are wider than their box, or that reach out of their list.
CUT_LEGENDS = """() => [...document.querySelectorAll('.legend li')].filter((entry) => {
  const [own, list] = [entry.getBoundingClientRect(), entry.parentElement.getBoundingClientRect()];
  const inside = own.left >= list.left - 1 && own.right <= list.right + 1 && own.bottom <= list.bottom + 1;
  return own.width === 0 || entry.scrollWidth > entry.clientWidth + 1 || !inside;
}).map((entry) => entry.textContent)"""


def check_width(page, where):
    page.evaluate("document.querySelectorAll('details').forEach((of) => (of.open = true))")
    width, inside = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= inside, f"{where}: {width} pixels wide in {inside}"
    for text in page.evaluate(CUT_LEGENDS):
        raise AssertionError(f"{where}: the legend {text!r} is cut or outside its list")


def check_keyboard(page, given):
    for at, item in enumerate(given["heatmaps"]):
        [values] = item["values"].values()
        article = page.locator(f"#map-{at}")
        article.locator("[role=application]").focus()
        said = lambda: article.locator("[aria-live]").text_content()
        page.keyboard.press("Enter")
        most = max(values)
        slice_, bucket = divmod(values.index(most), len(item["buckets"]))
        assert item["buckets"][bucket]["key"] in said(), f"Enter goes to {said()}"
        assert f"{most:,.3f}".rstrip("0").rstrip(".") + " " + item["metric"] in said(), said()
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Shift+ArrowUp")
        expected = item["buckets"][max(bucket - 10, 0)]["key"]
        assert expected in said() and f"range {max(bucket - 10, 0) + 1:,} of" in said(), said()
        value = values[len(item["buckets"]) + max(bucket - 10, 0)]
        assert f"{value:,.3f}".rstrip("0").rstrip(".") + " " + item["metric"] in said(), said()
        assert article.locator(".readout").text_content() == said()


SCALES = "() => tidetable.charts.map(({ plot, line }) => [plot, line].filter(Boolean).map((of) => [of.scales.x.min, of.scales.x.max]))"


def check_zoom(page):
    whole = page.evaluate(SCALES)
    assert len({tuple(scale) for chart in whole for scale in chart}) == 1, f"one axis of time: {whole}"
    page.locator("#map-0").scroll_into_view_if_needed()
    box = page.locator("#map-0 .u-over").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.6, steps=5)
    # The chart takes the last move with its next frame.
    page.wait_for_timeout(100)
    page.mouse.up()
    zoomed = page.evaluate(SCALES)
    [(least, most)] = {tuple(scale) for chart in zoomed for scale in chart}
    length = whole[0][0][1] - whole[0][0][0]
    assert abs((most - least) / length - 0.25) < 0.02, f"a quarter of {length} is {most - least}"
    return whole


def text_of_costs(page):
    return [row.all_text_contents() for row in [of.locator("td") for of in page.locator("#costs tbody tr").all()]]


def check_costs(page, plain):
    """The script's numbers are the page's own, and follow other prices."""
    assert text_of_costs(page) == text_of_costs(plain), "costs by the script differ from those in the file"
    data = element(page, "cost-data")
    changed = {"node_hour": 1.25, "gib_month": 0.5, "clusters": 3, "target": 0.9}
    for name, value in changed.items():
        page.locator(f"#prices [name={name}]").fill(str(value))
    of = {**data["prices"], **data["capacity"], **changed}
    for load, row in zip(data["loads"], text_of_costs(page), strict=True):
        busy = load["write_kib"] / of["writes"] + load["read_kib"] / of["reads"] + load["scan_mb"] / of["scan_mb"]
        dollars = []
        for stored in load["stored"]:
            nodes = math.ceil(max(busy / of["target"], stored / (of["stored_tb"] * 1e12), 1))
            total = of["clusters"] * (nodes * FORMULA_HOURS * of["node_hour"] + stored / 2**30 * of["gib_month"])
            dollars.append(f"${total:,.2f}")
        assert row[-1] == " – ".join(dict.fromkeys(dollars)), f"{row[-1]} is not {dollars}"
    page.locator("#prices [name=target]").fill("0")
    assert page.locator("#prices [name=target]").get_attribute("aria-invalid") == "true"
    page.locator("#prices button").click()
    page.wait_for_timeout(50)
    assert text_of_costs(page) == text_of_costs(plain), "costs as listed"


def check_without_script(browser, file, given):
    for size in SIZES:
        page, wrong = open_page(browser, file, size, script=False)
        for at, item in enumerate(given.get("heatmaps", [])):
            article = page.locator(f"#map-{at}")
            picture = article.locator("img")
            assert picture.is_visible() and picture.bounding_box()["height"] >= 250, f"picture {at}"
            assert article.locator("table").count() == 1
        assert all(not of.is_visible() for of in page.locator(".needs-script").all())
        width, inside = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= inside, f"{file.name} without script: {width} pixels wide in {inside}"
        assert not wrong, wrong
    return page


def check(browser, folder, name):
    file = folder / f"{name}.html"
    given = json.loads((folder / f"{name}.json").read_text())
    plain = check_without_script(browser, file, given)
    for size in SIZES:
        for theme in ("light", "dark"):
            where = f"{name}, {size[0]} pixels, {theme}"
            page, wrong = open_page(browser, file, size, theme)
            check_axe(page, where)
            if "heatmaps" in given:
                check_pixels(page, given, random.Random(where))
            check_width(page, where)
            check_axe(page, where + ", opened")
            assert not wrong, f"{where}: {wrong}"
            page.context.close()
    page, wrong = open_page(browser, file)
    assert element(page, "data") == given["data"], "data in the page differs from what was given"
    assert page.locator("h1").text_content() == given["title"].replace("\0", "")
    if "heatmaps" in given:
        check_keyboard(page, given)
        page.locator("#reset").click()
        whole = check_zoom(page)
        check_pixels(page, given, random.Random(name), whole=False)
        page.locator("#reset").click()
        assert page.evaluate(SCALES) == whole, "everything is shown again"
    if given.get("cost"):
        check_costs(page, plain)
    with page.expect_download() as download:
        page.locator("#save").click()
    assert json.loads(pathlib.Path(download.value.path()).read_text()) == given["data"]
    assert not wrong, f"{name}: {wrong}"


def main():
    chromium, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    names = sorted(file.stem for file in folder.glob("*.html"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for name in names:
            check(browser, folder, name)
        browser.close()
    print(f"all of {len(names)} pages")


if __name__ == "__main__":
    main()
