"""Puts the page together: one file, with the planner's WebAssembly, Chart.js and the data in it.

Usage: build.py FOLDER WASM CHART_JS OUTPUT INI...

FOLDER has page.html, page.css and page.js. An INI file below a folder "scenarios" is a scenario,
any other is data.
"""

import base64
import configparser
import json
import os
import sys

FIRST_SCENARIO = "pretrain-32"


def rows_of(path):
    """(section, key, text) of an INI file, in its order."""
    reader = configparser.ConfigParser(interpolation=None, delimiters=("=",),
                                       comment_prefixes=(";", "#"), strict=True)
    reader.optionxform = str
    with open(path, encoding="utf-8") as file:
        reader.read_file(file, path)
    return [[section, key, text] for section in reader.sections()
            for key, text in reader.items(section)]


def files_of(paths):
    data = []
    dates = []
    scenarios = {}
    for path in paths:
        rows = rows_of(path)
        about = {(section, key): text for section, key, text in rows}
        if os.path.basename(os.path.dirname(path)) == "scenarios":
            name = os.path.splitext(os.path.basename(path))[0]
            scenarios[name] = {
                "title": about.get(("about.scenario", "title"), name),
                "rows": [row for row in rows if not row[0].startswith("about.")]}
            continue
        data += rows
        dates += [f"{section[6:]} {text}" for (section, key), text in about.items()
                  if key == "date" and section.startswith("about.")]
    return {"data": data, "dates": dates, "scenarios": scenarios, "first": FIRST_SCENARIO}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def script(text):
    """Text that ends no script element early."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def main(arguments):
    folder, wasm, chart, output = arguments[:4]
    with open(wasm, "rb") as file:
        code = base64.b64encode(file.read()).decode("ascii")
    # In JSON a < may be escaped, which no HTML parser sees through.
    files = json.dumps(files_of(arguments[4:])).replace("<", "\\u003c")
    page = read(os.path.join(folder, "page.html"))
    for name, text in (("PAGE_CSS", read(os.path.join(folder, "page.css"))), ("WASM", code),
                       ("FILES", files), ("CHART_JS", script(read(chart))),
                       ("PAGE_JS", script(read(os.path.join(folder, "page.js"))))):
        before, found, after = page.partition(f"@{name}@")
        if not found:
            raise SystemExit(f"page.html has no place for {name}")
        page = before + text + after
    with open(output, "w", encoding="utf-8") as file:
        file.write(page)


main(sys.argv[1:])
