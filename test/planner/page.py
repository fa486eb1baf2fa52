#!/usr/bin/python3
"""Tests of the planner's page in a real browser, served and as a file.

Usage: page.py SHOAL [--pictures FOLDER]

Prints a line for each failure and `N passed, N failed` at the end; exit status 1 on a failure.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import plan
from browser import Browser

SHARE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "share", "shoal")
SCENARIO = os.path.join(SHARE, "scenarios", "pretrain-32.ini")
TILE = "return figure('%s').text"
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


ERRORS = "return [...document.querySelectorAll('.error')].map((one) => one.textContent)"
STATES = """
return [...document.querySelectorAll('.tile')].map((tile) => [tile.dataset.figure,
  tile.className.replace('tile ', ''), tile.querySelector('.state').textContent.slice(0, 8)]);
"""


def answer(tests):
    """A sentence that answers, coloured by its verdict; five tiles, the worst first to see."""
    browser = tests.browser
    said = command_line(tests, ["run", "--from", SCENARIO])
    level, text = browser.run("const one = document.getElementById('answer');"
                              "return [one.className, one.textContent]")
    tests.check(level == "answer ok" and said["verdict"] in text and "\u2713" in text,
                f"the sentence: {level} {text}, not {said['verdict']}")
    top = browser.run("return document.getElementById('answer').getBoundingClientRect().top")
    tests.check(top < 250, f"the sentence stands at {top}")
    states = browser.run(STATES)
    tests.check(len(states) == 5 and all(state == "ok" and "\u2713 ok" in told
                                         for _, state, told in states), f"tiles: {states}")
    browser.type("in-common-params", "405B")
    said = subprocess.run([tests.shoal, "plan", "run", "--from", SCENARIO, "--params", "405B",
                           "--json"], capture_output=True, text=True, check=False)
    tests.same(said.returncode, 3, "exit status of what is short")
    # Keys may arrive after they were sent.
    browser.wait("return document.getElementById('answer').className !== 'answer ok'")
    level, text = browser.run("const one = document.getElementById('answer');"
                              "return [one.className, one.textContent]")
    verdict = json.loads(said.stdout)["verdict"].replace("--storage-nodes", "storage nodes")
    tests.check(level == "answer short" and verdict in text and "\u2717" in text,
                f"405B: {level} {text}, not {verdict}")
    states = dict((name, state) for name, state, _ in browser.run(STATES))
    tests.check(states["write"] == "short" and states["nodes"] == "short" and
                states["read"] == "ok", f"405B: tiles {states}")
    tests.picture("short")
    for scheme in ("light", "dark"):
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        least = browser.run(CONTRAST)
        tests.check(least[0] >= CONTRAST_LEAST, f"contrast of what is short, {scheme}: {least}")
        tests.picture(f"short-{scheme}")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.type("in-common-params", "70B")


def form(tests):
    """Eight inputs stand open, each input once, the others behind "more"."""
    browser = tests.browser
    names = browser.run("return [...document.querySelectorAll('#form-open .field')]"
                        ".map((one) => one.dataset.path)")
    tests.same(names, ["common.params", "run.gpus", "common.dataset", "run.sample_size",
                       "run.samples_per_second", "common.interval", "common.storage_nodes",
                       "size.protection", "common.target"], "inputs that stand open")
    tests.same(browser.run("return document.getElementById('form-open').childElementCount"), 8,
               "questions that stand open")
    tests.same(browser.run("return document.getElementById('more').open"), False, "more")
    twice = browser.run("""const seen = new Set();
        return [...document.querySelectorAll('.field')].map((one) => one.dataset.path)
          .filter((path) => { const again = seen.has(path); seen.add(path); return again; })
          .concat(commonInputs().flatMap((input) => description.models.map((model) =>
            `${model.name}.${input.name}`)).filter((path) =>
            document.querySelector(`.field[data-path="${path}"]`)));""")
    tests.same(twice, [], "inputs that stand twice")
    browser.type("in-run-gpus", "512")
    tests.same(tests.tile("checkpoint.gpus"), "512", "512 GPUs")
    browser.type("in-run-gpus", "256")
    tests.same(browser.run("return document.getElementById('scenario').selectedOptions[0].text"
                           ".endsWith('(changed)')"), True, "a changed scenario is called so")
    browser.run("document.getElementById('reset').click()")
    tests.same(browser.run("return document.getElementById('scenario').selectedOptions[0].text"
                           ".endsWith('(changed)')"), False, "changes undone")


def in_sight(tests):
    """The answer stays in sight while one types, also on a narrow screen."""
    browser = tests.browser
    for width, height in ((1400, 900), (390, 780)):
        browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        seen = browser.run("""
            const control = document.getElementById('in-common-target');
            control.scrollIntoView({block: 'center'});
            const one = document.getElementById('answer').getBoundingClientRect();
            const field = control.getBoundingClientRect();
            return [one.top >= 0 && one.bottom <= innerHeight, field.top > one.bottom,
                    document.documentElement.scrollWidth <= innerWidth];""")
        tests.same(seen, [True, True, True], f"{width} px: the answer and the field")
        tests.picture(f"typing-{width}")
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def marks(tests):
    """Charts mark where one is, the target and the best value, on axes that a person reads."""
    found = tests.browser.run("""
        return Object.fromEntries([...charts].map(([id, chart]) => [id, {
          marks: chart.options.marks.map((mark) => mark.text),
          ticks: chart.scales.x.ticks.map((tick) => tick.label)}]));""")
    tests.check(any(text.startswith("now 30") for text in found["interval"]["marks"]) and
                any(text.startswith("best ") for text in found["interval"]["marks"]),
                f"marks: {found['interval']}")
    tests.check(any(text.startswith("target ") for text in found["stall"]["marks"]),
                f"marks: {found['stall']}")
    tests.check(set(found["interval"]["ticks"]) & {"1 h", "10 min", "1 d"} and
                not any("." in text for text in found["interval"]["ticks"]),
                f"ticks: {found['interval']['ticks']}")


# What is said at each key, and how long after the last key a problem is told: a test that asks from
# outside may come late.
WATCH = """
    window.watched = {at_keys: 0, last: 0, soonest: Infinity};
    const errors = () => document.querySelectorAll('.error').length;
    document.addEventListener('input', () => {
        watched.at_keys += errors();
        watched.last = performance.now();
    });
    new MutationObserver(() => {
        if (errors() > 0) {
            watched.soonest = Math.min(watched.soonest, performance.now() - watched.last);
        }
    }).observe(document.body, {childList: true, subtree: true});"""


def typing(tests):
    browser = tests.browser
    browser.run(WATCH)
    browser.type("in-common-target", "30s")
    tests.same(tests.tile("checkpoint.bandwidth_needed"), "32.67 GB/s", "target of 30 s")
    browser.type("in-common-params", "405B")
    tests.same(tests.tile("checkpoint.size"), "5.67 TB", "405 billion parameters")
    for text, part in (("60", "takes a time with its unit"), ("-3s", "takes 0 s to"),
                       ("60 parsecs", "takes a time with its unit"), ("1e999s", "takes a time")):
        before = browser.run("return [results.answer.verdict, document.getElementById('glance')"
                             ".getBoundingClientRect().height]")
        browser.type("in-common-target", text)
        browser.wait("return document.querySelector('.error') !== null")
        tests.same(browser.run("return document.getElementById('in-common-target')"
                               ".getAttribute('aria-invalid')"), "true", f"{text}: marked")
        beside = browser.run(ERRORS)
        tests.check(len(beside) == 1 and part in beside[0], f"{text}: beside it {beside}")
        tests.same(browser.run("return [results.answer.verdict, document.getElementById('glance')"
                               ".getBoundingClientRect().height]"), before,
                   f"{text}: the last good result stays")
        tests.same(browser.run("return document.querySelectorAll('[role=alert]:not([hidden])')"
                               ".length"), 1, f"{text}: told once")
    watched = browser.run("return watched")
    tests.check(watched["at_keys"] == 0 and watched["soonest"] is not None and
                watched["soonest"] > 300, f"a problem is told when typing pauses: {watched}")
    browser.type("in-common-target", "0s")
    browser.wait("return document.querySelector('.error') !== null")
    tests.check("the target time is zero" in browser.run(ERRORS)[0],
                f"a target of 0 s: {browser.run(ERRORS)}")
    browser.type("in-common-target", "60s")
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
    tests.check(("nope" in problem or "target" in problem) and "defaults" in problem,
                f"a link of nonsense: {problem}")
    tests.check(browser.run("return document.querySelectorAll('.tile').length") == 5,
                "a link of nonsense shows the defaults")
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
    differ = browser.run("return document.getElementById('compare-inputs').cells[1].textContent")
    tests.check("params: 70B, now 405B" in differ or "params: 810B" in differ or "now" in differ,
                f"what differs: {differ}")
    row = browser.run("return [...document.querySelectorAll('#compare tbody tr')]"
                      ".map((row) => [...row.cells].map((cell) => cell.textContent))[0]")
    tests.same(row[1:], ["980 GB", "5.68 TB"], "sizes side by side")
    tests.same(tests.tile("checkpoint.size"), "5.68 TB", "another scenario")
    browser.run("document.getElementById('unpin').click()")


def reasons(tests):
    browser = tests.browser
    browser.run("document.querySelector('#groups [data-why=\"checkpoint.best_daly\"]').focus()")
    browser.driver.switch_to.active_element.send_keys("\ue007")
    shown = browser.run("const why = document.getElementById('why');"
                        "return [why.open, why.innerText, why.querySelector('a')?.href]")
    tests.check(shown[0] and
                "sqrt(2 * best_stall * job_mttf)" in shown[1] and "Daly" in shown[1] and
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
          'th, td')].map((cell) => cell.offsetWidth))) >= 100,
          document.querySelectorAll('#out-latency thead th').length ===
            modelResult('latency').rows.length + 2,
          [...document.querySelectorAll('#models tbody tr')].filter((row) =>
            row.querySelectorAll('.why').length !== 1).length];""")
    tests.same(wide, [3, True, True, 0], "tables of several rows, one why a row")
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


def brought(tests, folder):
    """What --from and --data bring is in the page, and is text there."""
    evil = "</script><script>document.title='owned'</script>"
    scenario, data, page = (os.path.join(folder, name) for name in ("s.ini", "d.ini", "page.html"))
    with open(scenario, "w", encoding="utf-8") as file:
        file.write(f"[about.scenario]\ntitle = {evil}\n[common]\nparams = 13B\nnodes = 4\n")
    with open(data, "w", encoding="utf-8") as file:
        file.write(f"[prices]\nh200_spot = $3/h\n[about.prices.h200_spot]\nsource = {evil}\n")
    words = ["--from", scenario, "--data", data]
    plan.call(tests.shoal, ["--html", page] + words)
    tests.browser.open("file://" + page)
    tests.check("owned" not in tests.browser.run("return document.title"), "a script was brought")
    tests.same(tests.tile("checkpoint.size"), "182 GB", "what --from brings")
    wanted = command_line(tests, words)["models"]
    got = tests.browser.run("return results.models")
    tests.check(all(one["rows"] == other["rows"] for one, other in zip(got, wanted)) and
                len(got) == len(wanted), "plan --from and the page agree")
    tests.same(tests.browser.run("return modelResult('cost').inputs.find((one) => "
                                 "one.name === 'gpu_price').text"), "$3/h", "what --data brings")
    for force, code in (([], 1), (["--force"], 0)):
        run = subprocess.run([tests.shoal, "plan", "--html", page] + force, capture_output=True,
                             text=True, check=False)
        tests.same(run.returncode, code, f"--html over a file {force}: {run.stderr}")
    tests.check(os.path.getsize(page) <= 700000, f"{os.path.getsize(page)} bytes")
    tests.quiet("brought")


def refused(tests):
    """Silent connections, fewer than one address may have, hold nobody up and are closed after a
    while; localhost has a name."""
    server = subprocess.Popen([tests.shoal, "plan", "--serve", "localhost:0"],
                              stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().split()[0]
        tests.check(address.startswith("http://127.0.0.1:"), f"localhost is {address}")
        port = int(address.rstrip("/").rpartition(":")[2])
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
        began = time.monotonic()
        with urllib.request.urlopen(address, timeout=30) as one:
            one.read()
        tests.check(time.monotonic() - began < 4, "silent connections hold a request up")
        silent[0].settimeout(15)
        tests.same(silent[0].recv(1), b"", "a silent connection is closed")
        tests.check(4 < time.monotonic() - began < 12, f"after {time.monotonic() - began} s")
        for one in silent:
            one.close()
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
        for part in (answer, form, in_sight, marks, curves, typing, choices, curves, links,
                     side_by_side, reasons, exports, access, nothing_fetched):
            part(tests)
        tests.quiet("all")
        brought(tests, folder)
        served(tests, text)
        refused(tests)
    print(f"{tests.passed} passed, {tests.failed} failed")
    return 1 if tests.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
