#!/usr/bin/python3
"""Tests of the planner's page in a real browser, served and as a file.

Usage: page.py SHOAL [--pictures FOLDER]

Prints a line for each failure and `N passed, N failed` at the end; exit status 1 on a failure.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request

import plan
from browser import Browser

SHARE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "share", "shoal")
SCENARIO = os.path.join(SHARE, "scenarios", "pretrain-32.ini")
TILE = "return document.querySelector('.tile[data-figure=\"%s\"] strong').textContent"
# WCAG 2.1, 1.4.3: contrast of text.
CONTRAST_LEAST = 4.5
CONTRAST = """
function light(colour) {
  const [r, g, b] = colour.match(/[\\d.]+/g).map((part) => part / 255)
    .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function behind(element) {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (!/rgba\\(.*, 0\\)/.test(colour)) { return colour; }
  }
  return "rgb(255, 255, 255)";
}
let least = [99, ""];
for (const element of document.querySelectorAll(
    "h1, h2, p, label, small, button, th, td, strong, span, summary, a, input")) {
  const one = light(getComputedStyle(element).color);
  const other = light(behind(element));
  const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (ratio < least[0]) { least = [ratio, element.outerHTML.slice(0, 90)]; }
}
return least;
"""
NAMELESS = """
return [...document.querySelectorAll("input, select, button, textarea, canvas")].filter((control) =>
  !(control.labels?.length || control.getAttribute("aria-label") || control.textContent.trim()))
  .map((control) => control.outerHTML.slice(0, 90));
"""


class Tests:
    def __init__(self, shoal, pictures):
        self.shoal = shoal
        self.pictures = pictures
        self.passed = 0
        self.failed = 0
        self.browser = None

    def check(self, good, message):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {message}")

    def same(self, got, wanted, what):
        self.check(got == wanted, f"{what}: {got!r}, not {wanted!r}")

    def picture(self, name):
        if self.pictures:
            self.browser.picture(os.path.join(self.pictures, name + ".png"))

    def tile(self, path):
        return self.browser.run(TILE % path)

    def quiet(self, what):
        self.same(self.browser.errors(), [], f"{what}: the console")


def command_line(tests, words):
    return json.loads(plan.call(tests.shoal, words + ["--json"]))


def same_numbers(tests):
    """The page and the command line agree in every figure of every model."""
    wanted = command_line(tests, ["--from", SCENARIO])["models"]
    got = tests.browser.run("return results.models")
    tests.same([model["model"] for model in got], [model["model"] for model in wanted], "models")
    for one, other in zip(got, wanted):
        tests.check(one["rows"] == other["rows"], f"{one['model']}: the page shows other figures")
    for model in wanted:
        for name, figure in model["rows"][0].items():
            path = f"{model['model']}.{name}"
            shown = tests.browser.run(
                "return document.querySelector('tr[data-figure=\"' + arguments[0] + '\"] td')"
                "?.textContent", path)
            if len(model["rows"]) == 1 and shown != figure["text"]:
                tests.check(False, f"{path} is shown as {shown}, not {figure['text']}")


def typing(tests):
    browser = tests.browser
    browser.type("in-checkpoint-target", "30s")
    tests.same(tests.tile("checkpoint.bandwidth_needed"), "32.67 GB/s", "target of 30 s")
    browser.type("in-checkpoint-params", "405B")
    tests.same(tests.tile("checkpoint.size"), "5.67 TB", "405 billion parameters")
    for text, part in (("60", "takes a time with its unit"), ("-3s", "takes 0 s to"),
                       ("60 parsecs", "takes a time with its unit"), ("1e999s", "takes a time")):
        browser.type("in-checkpoint-target", text)
        problem = browser.run("return document.getElementById('problem').textContent")
        tests.check(part in problem and "target" in problem, f"{text}: \"{problem}\"")
        tests.same(browser.run("return document.getElementById('in-checkpoint-target')"
                               ".getAttribute('aria-invalid')"), "true", f"{text}: marked")
        beside = browser.run("return [...document.querySelectorAll('.error')].map((one) => "
                             "one.textContent)")
        tests.check(len(beside) == 1 and part in beside[0], f"{text}: beside it {beside}")
    browser.type("in-checkpoint-target", "0s")
    tests.check(tests.tile("checkpoint.bandwidth_needed").startswith("cannot be computed: "),
                "a target of 0 s")
    browser.type("in-checkpoint-target", "60s")
    tests.same(browser.run("return document.getElementById('problem').hidden"), True, "mended")
    text = browser.run("return document.body.innerText")
    tests.check(not any(word in text.split() for word in ("inf", "nan", "NaN", "Infinity", "null",
                                                          "undefined")), "inf or nan in the page")
    tests.quiet("typing")


def choices(tests):
    tests.browser.run("""
        const control = document.getElementById('in-checkpoint-state');
        control.value = 'weights-bf16';
        control.dispatchEvent(new Event('input', {bubbles: true}));""")
    tests.same(tests.tile("checkpoint.size"), "810 GB", "weights only")


def curves(tests):
    drawn = tests.browser.run("""
        return [...charts].map(([id, chart]) => ({
          id, counts: chart.data.datasets.map((set) => set.data.length),
          finite: chart.data.datasets.every((set) => set.data.every(
            (point) => Number.isFinite(point.x) && Number.isFinite(point.y))),
          titles: [chart.options.scales.x.title.text, chart.options.scales.y.title.text],
          ticks: [chart.scales.x.ticks.length, chart.scales.y.ticks.length],
          ink: chart.canvas.toDataURL().length,
          rows: document.querySelectorAll('#chart-' + id + ' tbody tr').length}));""")
    tests.check(len(drawn) >= 4, f"{len(drawn)} curves")
    for chart in drawn:
        tests.check(min(chart["counts"]) >= 3 and chart["finite"], f"points of {chart['id']}")
        tests.check(all(chart["titles"]) and min(chart["ticks"]) >= 2, f"axes of {chart['id']}")
        tests.check(chart["ink"] > 10000, f"{chart['id']} is drawn: {chart['ink']} bytes")
        tests.check(chart["rows"] >= 3, f"table of {chart['id']}")


def links(tests):
    browser = tests.browser
    before = browser.run(
        "return [location.href, headline().get('checkpoint.size'), results.models]")
    browser.open(before[0])
    tests.same(tests.tile("checkpoint.size"), before[1], "the link's figure")
    tests.check(browser.run("return results.models") == before[2], "the link brings all back")
    browser.run("settings.clear(); compute();")
    defaults = browser.run("return [location.href, results.models]")
    browser.open(defaults[0])
    tests.check(browser.run("return results.models") == defaults[1], "a link of defaults alone")
    browser.open(before[0].split("#")[0] + "#checkpoint.target=<script>&nope.x=1")
    problem = browser.run("return document.getElementById('problem').textContent")
    tests.check("nope" in problem or "target" in problem, f"a link of nonsense: {problem}")
    browser.run("document.getElementById('report').click()")
    text = browser.run("return document.getElementById('discrepancy-text').value")
    tests.check("nope.x = 1" in text, f"a discrepancy of a link of nonsense: {text}")
    tests.check(browser.run("return ['pin', 'csv'].every("
                            "(id) => document.getElementById(id).disabled)"),
                "there is nothing to keep of a link of nonsense")
    for name in ("constructor", "__proto__", "no-such"):
        browser.open(before[0].split("#")[0] + "#scenario=" + name)
        tests.check(browser.run("return results !== null"), f"a scenario called {name}")
    browser.open(before[0].split("#")[0])


def side_by_side(tests):
    browser = tests.browser
    browser.run("document.getElementById('pin').click()")
    browser.run("""const control = document.getElementById('scenario');
        control.value = 'production-128'; control.dispatchEvent(new Event('change'));""")
    tests.same(browser.run("return document.querySelectorAll('#compare thead th').length"), 3,
               "columns side by side")
    row = browser.run("return [...document.querySelectorAll('#compare tbody tr')]"
                      ".map((row) => [...row.cells].map((cell) => cell.textContent))[0]")
    tests.same(row[1:], ["980 GB", "5.68 TB"], "sizes side by side")
    tests.same(tests.tile("checkpoint.size"), "5.68 TB", "another scenario")
    browser.run("document.getElementById('unpin').click()")


def reasons(tests):
    browser = tests.browser
    browser.run("document.querySelector('.tile [data-why=\"checkpoint.best_daly\"]').focus()")
    browser.driver.switch_to.active_element.send_keys("\ue007")
    shown = browser.run("const why = document.getElementById('why');"
                        "return [why.open, why.innerText, why.querySelector('a')?.href]")
    tests.check(shown[0] and "best_daly = sqrt(2 * stall" in shown[1] and "Daly" in shown[1] and
                (shown[2] or "").startswith("https://"), f"why: {shown}")
    tests.picture("why")
    browser.driver.switch_to.active_element.send_keys("\ue00c")
    tests.same(browser.run("return document.getElementById('why').open"), False, "why is closed")
    prices = browser.run("""
        document.querySelector('#models [data-why="cost.gpu_cost"]').click();
        const why = document.getElementById('why');
        const text = why.innerText;
        document.getElementById('why-close').click();
        return text;""")
    tests.check("2026-05-18" in prices, f"no date of a price: {prices}")
    counts = browser.run("""
        for (const one of document.querySelectorAll('#models details')) { one.open = true; }
        return [...document.querySelectorAll('#models td.number')].filter((cell) =>
          !cell.parentElement.querySelector('.why')).length;""")
    tests.same(counts, 0, "numbers without a why")
    wide = browser.run("""
        const tables = [...document.querySelectorAll('#models table.wide')];
        return [tables.length, Math.min(...tables.flatMap((table) => [...table.querySelectorAll(
          'th, td')].map((cell) => cell.offsetWidth))),
          document.querySelectorAll('#out-latency thead th').length,
          modelResult('latency').rows.length + 1,
          [...document.querySelectorAll('#models .wide td')].filter((cell) =>
            cell.textContent.trim() && !cell.querySelector('.why')).length];""")
    tests.check(wide[0] == 2 and wide[1] >= 100 and wide[2] == wide[3] and wide[4] == 0,
                f"tables of several rows: {wide}")
    tests.picture("tables")


def exports(tests):
    csv = tests.browser.run("return csv()")
    tests.check(csv.startswith("model,row,result,value,unit,text\r\ncheckpoint,0,") and
                csv.count("\r\n") > 100, "CSV")
    tests.browser.run("document.getElementById('report').click()")
    text = tests.browser.run("return document.getElementById('discrepancy-text').value")
    version = plan_version(tests.shoal)
    tests.check(f"Shoal planner {version}" in text and "common.nodes = 128" in text and
                "checkpoint.size = " in text, f"report: {text[:200]}")
    tests.browser.run("""navigator.clipboard.writeText = () => Promise.reject(new Error("no"));
        document.getElementById('discrepancy-copy').click();""")
    said = tests.browser.run("""return new Promise((done) => setTimeout(() =>
        done([document.getElementById('said').textContent, String(getSelection())]), 50));""")
    tests.check("by hand" in said[0] and "Shoal planner" in said[1], f"copying refused: {said}")
    tests.browser.run("document.getElementById('discrepancy-close').click()")


def plan_version(shoal):
    run = subprocess.run([shoal, "version"], capture_output=True, text=True, check=True)
    return run.stdout.split()[1]


def access(tests):
    browser = tests.browser
    tests.same(browser.run(NAMELESS), [], "controls without a name")
    for scheme in ("light", "dark"):
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        least = browser.run(CONTRAST)
        tests.check(least[0] >= CONTRAST_LEAST, f"contrast, {scheme}: {least}")
        tests.picture(scheme)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    tests.same(browser.run("return getComputedStyle(document.querySelector('.bar')).display"),
               "none", "buttons on paper")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 360, "height": 780, "deviceScaleFactor": 2, "mobile": True})
    wide = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
    tests.check(wide[0] <= wide[1], f"a narrow screen: {wide}")
    tests.picture("narrow")
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.run("document.querySelector('.skip').focus()")
    seen = {browser.run("return document.activeElement.className")}
    for _ in range(12):
        browser.driver.switch_to.active_element.send_keys("\ue004")
        seen.add(browser.run("return document.activeElement.id || document.activeElement.tagName"))
    tests.check({"skip", "scenario", "pin", "csv"} <= seen, f"the tab key reaches {sorted(seen)}")


def nothing_fetched(tests):
    tests.same(tests.browser.run("return performance.getEntriesByType('resource').length"), 0,
               "files fetched")


def served(tests, text):
    """What is served is the file, and only to who asks for it rightly."""
    server = subprocess.Popen([tests.shoal, "plan", "--serve", "0"], stdout=subprocess.PIPE,
                              text=True)
    try:
        address = server.stdout.readline().split()[0]
        tests.check(address.startswith("http://127.0.0.1:"), f"address {address}")
        with urllib.request.urlopen(address, timeout=30) as answer:
            tests.same(answer.headers["Content-Type"], "text/html; charset=utf-8", "its type")
            tests.check(answer.read().decode() == text, "the page served is the file")
        for path, method, status in (("nothing", "GET", 404), ("", "POST", 405),
                                     ("../etc/passwd", "GET", 404)):
            request = urllib.request.Request(address + path, method=method)
            try:
                urllib.request.urlopen(request, timeout=30).close()
                tests.check(False, f"{method} /{path} is answered")
            except urllib.error.HTTPError as error:
                tests.same(error.code, status, f"{method} /{path}")
        tests.browser.open(address)
        tests.same(tests.tile("checkpoint.size"), "980 GB", "served")
        nothing_fetched(tests)
        tests.quiet("served")
    finally:
        server.send_signal(signal.SIGTERM)
        tests.same(server.wait(30), 0, "the server's end")


def main(arguments):
    tests = Tests(arguments[0], arguments[2] if arguments[1:2] == ["--pictures"] else None)
    with tempfile.TemporaryDirectory() as folder, Browser() as tests.browser:
        path = os.path.join(folder, "plan.html")
        plan.call(tests.shoal, ["--html", path])
        with open(path, encoding="utf-8") as file:
            text = file.read()
        tests.browser.open("file://" + path)
        tests.quiet("opening")
        same_numbers(tests)
        for part in (curves, typing, choices, curves, links, side_by_side, reasons, exports, access,
                     nothing_fetched):
            part(tests)
        tests.quiet("all")
        served(tests, text)
    print(f"{tests.passed} passed, {tests.failed} failed")
    return 1 if tests.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
