/* The planner's page. All arithmetic is the planner's own, compiled to WebAssembly; what is here
 * makes forms, tiles, curves and tables of what the models say of themselves. */
"use strict";

/* Headline figures, and the curves: model, swept input, its range, the figures drawn. */
const TILES = [
  "checkpoint.size", "checkpoint.bandwidth_needed", "checkpoint.stall", "checkpoint.idle",
  "checkpoint.best_daly", "checkpoint.useful", "loading.bandwidth_needed", "loading.useful",
  "metadata.targets_needed", "metadata.planned_wait", "size.usable", "size.write_bandwidth",
  "size.nodes_needed", "cost.net", "cost.break_even", "cost.tco_3",
];
const CHARTS = [
  {id: "stall", title: "Stall against bandwidth", model: "checkpoint", input: "write_bandwidth",
   range: "1GB/s..1TB/s:25log", outputs: ["stall"], log: true, logY: true},
  {id: "utilisation", title: "Share of the time that trains, against nodes", model: "checkpoint",
   input: "nodes", range: "1..4096:25log", outputs: ["useful"], log: true},
  {id: "waiting", title: "Waiting for metadata against load", model: "metadata",
   input: "utilisation", range: "5%..99%:48", outputs: ["planned_wait"], logY: true, least: 1e-9,
   axis: "mean wait (M/M/c)"},
  {id: "scaling", title: "Throughput against clients, by three laws", model: "scaling",
   input: "clients", range: "1..1024:31log", outputs: ["quoted", "amdahl", "usl"], log: true,
   logY: true, axis: "throughput", names: ["widely quoted S(N)", "Amdahl", "USL"]},
  {id: "cost", title: "Cost a month against capacity", model: "cost", input: "capacity",
   range: "10TB..2PB:25log", outputs: ["own_month_all", "managed_month"], log: true, logY: true,
   axis: "cost a month", names: ["own, with what is bought", "managed"]},
];

const $ = (id) => document.getElementById(id);
const files = JSON.parse($("files").textContent);
/* "section.key" -> text as typed; what is not here has its default. */
let settings = new Map();
let description = null;
let results = null;
const pinned = [];
const charts = new Map();

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") {
      made.textContent = value;
    } else if (key.startsWith("on")) {
      made.addEventListener(key.slice(2), value);
    } else if (value !== false) {
      made.setAttribute(key, value === true ? "" : value);
    }
  }
  made.append(...children);
  return made;
}

/* ---- The planner ---- */

let wasm = null;

async function start() {
  const text = atob($("wasm").textContent.trim());
  const module = await WebAssembly.compile(Uint8Array.from(text, (char) => char.charCodeAt(0)));
  const imports = {};
  /* The C library names calls of a system that is not here; none is made but when it gives up. */
  for (const {module: group, name} of WebAssembly.Module.imports(module)) {
    imports[group] ??= {};
    imports[group][name] = () => { throw new Error(`the planner called ${group}.${name}`); };
  }
  wasm = (await WebAssembly.instantiate(module, imports)).exports;
  wasm._initialize();
}

function ask(...lines) {
  const bytes = new TextEncoder().encode(lines.join("\n"));
  const place = wasm.page_request(bytes.length);
  if (place === 0) {
    throw new Error("memory ran out");
  }
  new Uint8Array(wasm.memory.buffer, place, bytes.length).set(bytes);
  const answer = wasm.page_answer();
  if (answer === 0) {
    throw new Error("memory ran out");
  }
  const memory = new Uint8Array(wasm.memory.buffer, answer);
  return JSON.parse(new TextDecoder().decode(memory.subarray(0, memory.indexOf(0))));
}

/* A tab or a line end would be a field of its own. */
const clean = (text) => text.replace(/[\t\n\r]+/g, " ");

function settingLines() {
  return [...settings].map(([path, text]) => {
    const dot = path.indexOf(".");
    return `${path.slice(0, dot)}\t${path.slice(dot + 1)}\t${clean(text)}`;
  });
}

/* ---- Inputs ---- */

/* Inputs of the same name and kind in two models or more are set once. */
function commonInputs() {
  const seen = new Map();
  for (const model of description.models) {
    for (const input of model.inputs) {
      const key = `${input.name} ${input.kind} ${input.unit} ${input.choices}`;
      const known = seen.get(key);
      seen.set(key, known ? {...known, count: known.count + 1} : {input, count: 1});
    }
  }
  return [...seen.values()].filter((one) => one.count > 1).map((one) => one.input);
}

function field(section, input) {
  const id = `in-${section}-${input.name}`;
  const path = `${section}.${input.name}`;
  const attributes = {id, name: path, "aria-describedby": `${id}-help`,
                      oninput: (event) => set(path, event.target.value)};
  let control;
  if (input.kind === "choice") {
    control = element("select", attributes,
      element("option", {value: "", text: "default"}),
      ...input.choices.split("|").map((choice) => element("option", {value: choice, text: choice})));
  } else {
    control = element("input", {...attributes, type: "text", spellcheck: "false",
                                placeholder: input.default});
  }
  return element("div", {class: "field", "data-path": path},
    element("label", {for: id, text: input.name.replaceAll("_", " ")}), control,
    element("small", {id: `${id}-help`, text: input.help}));
}

function makeForms() {
  const common = commonInputs();
  const sections = [["common", "For all models", common],
    ...description.models.map((model) => [model.name, model.name, model.inputs])];
  for (const [section, title, inputs] of sections) {
    const details = element("details", {id: `form-${section}`},
      element("summary", {text: title}), ...inputs.map((input) => field(section, input)));
    details.open = matchMedia("(min-width: 62rem)").matches &&
      (section === "common" || section === "checkpoint");
    $("inputs").append(details);
  }
}

function clearWrong(box) {
  box.classList.remove("wrong");
  box.querySelector("input, select").removeAttribute("aria-invalid");
  box.querySelector(".error")?.remove();
}

/* What the fields say, and what an empty one stands for. */
function showFields() {
  for (const box of document.querySelectorAll(".field")) {
    const control = box.querySelector("input, select");
    const text = settings.get(box.dataset.path) ?? "";
    if (control !== document.activeElement) {
      control.value = text;
    }
    clearWrong(box);
  }
  for (const model of results?.models ?? []) {
    for (const input of model.inputs) {
      for (const section of [model.model, "common"]) {
        const control = $(`in-${section}-${input.name}`);
        if (control?.tagName === "INPUT" && section === model.model) {
          control.placeholder = input.text;
        } else if (control?.tagName === "SELECT" && section === model.model) {
          control.options[0].textContent = `${input.text} (default)`;
        }
      }
    }
  }
}

function set(path, text) {
  if (text.trim() === "") {
    settings.delete(path);
  } else {
    settings.set(path, text);
  }
  compute();
}

/* ---- Results ---- */

function compute() {
  const answer = ask("run", ...settingLines());
  $("problem").hidden = !answer.problem;
  $("results").classList.toggle("stale", Boolean(answer.problem));
  /* Of a link that is refused there is nothing to keep yet. */
  $("pin").disabled = $("csv").disabled = Boolean(answer.problem) && results === null;
  if (answer.problem) {
    /* "[checkpoint] target takes a time ..." names the field. */
    const match = /^\[(\w+)\] (\w+)/.exec(answer.problem);
    $("problem").textContent = answer.problem;
    const box = match && document.querySelector(`.field[data-path="${match[1]}.${match[2]}"]`);
    for (const wrong of document.querySelectorAll(".field.wrong")) {
      clearWrong(wrong);
    }
    if (box) {
      box.classList.add("wrong");
      box.querySelector("input, select").setAttribute("aria-invalid", "true");
      box.append(element("small", {class: "error", text: answer.problem.replace(/^\[\w+\] /, "")
        .replace(/for example \[\w+\] \w+ /, "for example ")}));
    }
    return;
  }
  results = answer;
  showFields();
  showTiles();
  showModels();
  showCompare();
  showCharts();
  history.replaceState(null, "", hash());
}

const modelResult = (name) => results.models.find((model) => model.model === name);

function figure(path) {
  const [name, output] = path.split(".");
  const model = modelResult(name);
  const meta = model.outputs.find((one) => one.name === output);
  return {model, meta, ...model.rows[0][output]};
}

function whyButton(model, meta, row) {
  return element("button", {type: "button", class: "why", text: "why",
    "aria-label": `Why: ${meta.label}`, "data-why": `${model.model}.${meta.name}`,
    onclick: () => showWhy(model, meta, row)});
}

function showTiles() {
  $("tiles").replaceChildren(...TILES.map((path) => {
    const {model, meta, text, value} = figure(path);
    return element("div", {class: "tile", "data-figure": path},
      element("strong", {text, class: value === null ? "cannot" : ""}),
      element("span", {text: `${meta.label} (${model.model})`}),
      whyButton(model, meta, model.rows[0]));
  }));
}

function modelTable(model) {
  if (model.rows.length === 1) {
    return element("table", {}, element("tbody", {}, ...model.outputs.map((meta) =>
      element("tr", {"data-figure": `${model.model}.${meta.name}`},
        element("th", {scope: "row", text: meta.label}),
        element("td", {class: meta.unit === "words" ? "" : "number"},
          ...words(model.rows[0][meta.name].text)),
        element("td", {}, whyButton(model, meta, model.rows[0]))))));
  }
  const cell = (meta, row) => element("td", {}, ...words(row[meta.name].text), " ",
    ...(row[meta.name].text ? [whyButton(model, meta, row)] : []));
  /* The shorter side across, as a page is wider than a line is long. */
  const [first, ...others] = model.outputs;
  if (model.outputs.length > model.rows.length) {
    return element("table", {class: "wide"},
      element("thead", {}, element("tr", {}, element("th", {scope: "col", text: first.label}),
        ...model.rows.map((row) => element("th", {scope: "col", text: row[first.name].text})))),
      element("tbody", {}, ...others.map((meta) => element("tr", {},
        element("th", {scope: "row", text: meta.label}),
        ...model.rows.map((row) => cell(meta, row))))));
  }
  return element("table", {class: "wide"},
    element("thead", {}, element("tr", {}, ...model.outputs.map((meta) =>
      element("th", {scope: "col", text: meta.label})))),
    element("tbody", {}, ...model.rows.map((row) => element("tr", {},
      ...model.outputs.map((meta) => cell(meta, row))))));
}

function showModels() {
  const open = new Set([...document.querySelectorAll("#models details[open]")].map((one) => one.id));
  $("models").replaceChildren(...results.models.map((model) => {
    const details = element("details", {id: `out-${model.model}`},
      element("summary", {text: `${model.model}: ${model.summary}`}),
      element("div", {class: "scroll"}, modelTable(model)));
    details.open = open.has(details.id);
    return details;
  }));
}

/* Words with what is a link in them as a link. */
const words = (text) => text.split(/(https:\/\/[^\s,;]+)/)
  .map((part, index) => index % 2 === 1 ? linked(part, part) : part);

const linked = (text, url) =>
  url ? element("a", {href: url, rel: "noreferrer", target: "_blank", text}) : text;

function showWhy(model, meta, row) {
  const values = meta.names.map((name) => {
    const input = model.inputs.find((one) => one.name === name);
    return element("tr", {}, element("th", {scope: "row", text: name}),
      element("td", {text: input ? input.text : row[name].text}),
      element("td", {}, input ? input.help : model.outputs.find((one) => one.name === name).label,
        ...(input?.source ? [" (", linked(input.source, input.url),
                             input.date ? `, ${input.date})` : ")"] : [])));
  });
  const value = row[meta.name].value;
  $("why-title").textContent = `${meta.label}: ${row[meta.name].text}`;
  $("why-body").replaceChildren(
    ...(meta.formula ? [element("p", {}, element("code", {text: `${meta.name} = ${meta.formula}`}))]
      : []),
    ...(values.length ? [element("table", {}, element("tbody", {}, ...values))] : []),
    ...(typeof value === "number" ? [element("p", {text: `In base units: ${value} ${
      meta.unit === "1" ? "" : meta.unit}`})] : []),
    element("p", {}, "Source: ", linked(meta.source, meta.url)));
  $("why").showModal();
}

/* ---- Curves ---- */

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/* A share and a count have the same base unit; their texts tell them apart. */
function axisUnit(unit, values) {
  const known = values.filter((value) => value.value !== null);
  return unit === "1" && known.length && known.every((value) => value.text.endsWith("%"))
    ? "share" : unit;
}

function curve(chart) {
  const answer = ask("sweep", `${chart.model}\t${chart.input}=${chart.range}`, ...settingLines());
  if (answer.problem) {
    return {problem: answer.problem, points: [], labels: []};
  }
  const metas = chart.outputs.map((name) => answer.outputs.find((meta) => meta.name === name));
  const rows = answer.rows.map((row) => ({x: row[chart.input],
    y: chart.outputs.map((name) => row[name])}));
  return {points: rows, labels: chart.names ?? metas.map((meta) => meta.label),
          unit: axisUnit(metas[0].unit, rows.map((row) => row.y[0])),
          inputUnit: axisUnit(answer.inputs.find((one) => one.name === chart.input).unit,
                              rows.map((row) => row.x))};
}

const PREFIXES = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];

function tick(value, unit) {
  if (unit === "share") {
    return `${Number((value * 100).toPrecision(3))} %`;
  }
  if (unit === "s") {
    for (const [size, name] of [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]) {
      if (Math.abs(value) >= size) {
        return `${Number((value / size).toPrecision(3))} ${name}`;
      }
    }
    return `${value} s`;
  }
  const short = {"bytes": "B", "bytes/s": "B/s", "1/s": "/s", "1": "", "$": "$", "$/s": "$/s"}[unit] ?? unit;
  for (const [size, prefix] of PREFIXES) {
    if (Math.abs(value) >= size) {
      return `${Number((value / size).toPrecision(3))} ${prefix}${short}`.trim();
    }
  }
  return `${Number(value.toPrecision(3))} ${short}`.trim();
}

function drawChart(chart, box, data) {
  const ink = colour("--ink");
  const colours = [colour("--mark"), "#c2571a", "#3a8f3a", "#8a4fb5"];
  const datasets = chart.outputs.map((name, index) => ({
    label: data.labels[index],
    data: data.points.filter((point) => point.y[index].value !== null &&
        (!chart.logY || point.y[index].value > (chart.least ?? 0)))
      .map((point) => ({x: point.x.value, y: point.y[index].value, text: point.y[index].text,
                        at: point.x.text})),
    borderColor: colours[index % colours.length],
    backgroundColor: colours[index % colours.length],
    borderDash: index === 0 ? [] : [6, 2 * index], tension: 0, pointRadius: 2.5,
  }));
  const old = charts.get(chart.id);
  const scale = (title, unit, log) => ({
    type: log ? "logarithmic" : "linear",
    title: {display: true, text: title, color: ink},
    grid: {color: colour("--line")},
    ticks: {color: ink, maxTicksLimit: 9, maxRotation: 0, autoSkipPadding: 12,
            /* Of a logarithmic axis the powers of ten only: the others lie too close together. */
            callback: (value) => log && Math.abs(Math.log10(value) % 1) > 1e-9 ? "" : tick(value, unit)},
  });
  const options = {
    responsive: true, maintainAspectRatio: false, animation: false,
    scales: {x: scale(chart.input.replaceAll("_", " "), data.inputUnit, chart.log),
             y: scale(chart.axis ?? data.labels[0], data.unit, chart.logY)},
    plugins: {
      legend: {display: datasets.length > 1,
               labels: {color: ink, usePointStyle: true, pointStyle: "line"}},
      tooltip: {callbacks: {
        title: (items) => items[0].raw.at,
        label: (item) => `${item.dataset.label}: ${item.raw.text}`}},
    },
  };
  if (old) {
    old.data.datasets = datasets;
    old.options = options;
    old.update();
  } else {
    charts.set(chart.id, new Chart(box.querySelector("canvas"),
      {type: "line", data: {datasets}, options}));
  }
  box.querySelector("tbody").replaceChildren(...data.points.map((point) => element("tr", {},
    element("th", {scope: "row", text: point.x.text}),
    ...point.y.map((value) => element("td", {text: value.text})))));
}

function showCharts() {
  for (const chart of CHARTS) {
    let box = $(`chart-${chart.id}`);
    const data = curve(chart);
    if (!box) {
      box = element("figure", {id: `chart-${chart.id}`},
        element("figcaption", {text: chart.title}),
        element("div", {class: "plot"}, element("canvas", {role: "img", "aria-label":
          `${chart.title}; the same as a table follows`})),
        element("details", {}, element("summary", {text: "As a table"}),
          element("table", {}, element("thead", {}, element("tr", {},
            element("th", {scope: "col", text: chart.input.replaceAll("_", " ")}),
            ...data.labels.map((label) => element("th", {scope: "col", text: label})))),
          element("tbody"))));
      $("charts").append(box);
    }
    drawChart(chart, box, data);
  }
}

/* ---- Scenarios ---- */

/* A common setting that one model alone has is that model's, so that it has a field. */
function placeSettings() {
  const common = new Set(commonInputs().map((input) => input.name));
  for (const scenario of Object.values(files.scenarios)) {
    scenario.rows = scenario.rows.map(([section, key, text]) => {
      const model = description.models.find((one) => one.inputs.some((input) => input.name === key));
      return [section === "common" && !common.has(key) && model ? model.name : section, key, text];
    });
  }
}

function load(name) {
  settings = new Map(files.scenarios[name].rows
    .map(([section, key, text]) => [`${section}.${key}`, text]));
}

function hash() {
  const scenario = files.scenarios[$("scenario").value];
  const same = scenario.rows.length === settings.size &&
    scenario.rows.every(([section, key, text]) => settings.get(`${section}.${key}`) === text);
  if (settings.size === 0) {
    return "#defaults";
  }
  return "#" + (same ? `scenario=${encodeURIComponent($("scenario").value)}`
    : new URLSearchParams([...settings]).toString());
}

/* Inputs from the link; unknown ones are the planner's to refuse. */
function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  const name = given.get("scenario");
  if (name && Object.hasOwn(files.scenarios, name)) {
    $("scenario").value = name;
    load(name);
  } else if (given.has("defaults")) {
    settings = new Map();
  } else if ([...given].some(([path]) => path.includes("."))) {
    settings = new Map([...given].filter(([path]) => path.includes(".")));
  } else {
    load($("scenario").value);
  }
}

function showCompare() {
  $("compare-section").hidden = pinned.length === 0;
  if (pinned.length === 0) {
    return;
  }
  const now = {title: "now", values: headline()};
  const columns = [...pinned, now];
  $("compare").replaceChildren(
    element("thead", {}, element("tr", {}, element("th", {scope: "col", text: "figure"}),
      ...columns.map((column) => element("th", {scope: "col", text: column.title})))),
    element("tbody", {}, ...TILES.map((path) => element("tr", {},
      element("th", {scope: "row", text: `${figure(path).meta.label} (${path.split(".")[0]})`}),
      ...columns.map((column) => element("td", {class: "number", text: column.values.get(path)}))))));
}

const headline = () => new Map(TILES.map((path) => [path, figure(path).text]));

function say(text) {
  $("said").textContent = text;
}

async function copy(text, what, instead) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
  } catch {
    say(`copying is not allowed here; ${instead}`);
  }
}

function csvField(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csv() {
  const lines = ["model,row,result,value,unit,text"];
  for (const model of results.models) {
    model.rows.forEach((row, index) => {
      for (const meta of model.outputs) {
        const {value, text} = row[meta.name];
        lines.push([model.model, String(index), meta.name, value === null ? "" : String(value),
          meta.unit, text].map(csvField).join(","));
      }
    });
  }
  return lines.join("\r\n") + "\r\n";
}

function download() {
  const url = URL.createObjectURL(new Blob([csv()], {type: "text/csv"}));
  element("a", {href: url, download: "shoal-plan.csv"}).click();
  URL.revokeObjectURL(url);
  say("shoal-plan.csv saved");
}

function discrepancy() {
  return [`Shoal planner ${description.version}`, "", "Which number is wrong, and what it should be:",
    "", "", "Inputs:", ...[...settings].map(([path, text]) => `  ${path} = ${text}`), "", "Results:",
    ...(results ? TILES.map((path) => `  ${path} = ${figure(path).text}`) : []), ""].join("\n");
}

function makeBar() {
  for (const [name, scenario] of Object.entries(files.scenarios)) {
    $("scenario").append(element("option", {value: name, text: scenario.title}));
  }
  if (files.scenarios[files.first]) {
    $("scenario").value = files.first;
  }
  const restart = () => { load($("scenario").value); compute(); };
  $("scenario").addEventListener("change", restart);
  $("reset").addEventListener("click", restart);
  $("pin").addEventListener("click", () => {
    pinned.push({title: `${pinned.length + 1}: ${$("scenario").selectedOptions[0].text}`,
                 values: headline()});
    showCompare();
    say("kept; change the inputs and compare");
  });
  $("unpin").addEventListener("click", () => { pinned.length = 0; showCompare(); });
  $("link").addEventListener("click", () => copy(location.href, "link", "the address bar has the link"));
  $("csv").addEventListener("click", download);
  $("print").addEventListener("click", () => window.print());
  $("report").addEventListener("click", () => {
    $("discrepancy-text").value = discrepancy();
    $("discrepancy").showModal();
  });
  $("discrepancy-copy").addEventListener("click", () => {
    $("discrepancy-text").select();
    copy($("discrepancy-text").value, "report", "the text is marked, copy it by hand");
  });
  $("discrepancy-close").addEventListener("click", () => $("discrepancy").close());
  $("why-close").addEventListener("click", () => $("why").close());
  $("inputs").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", () => { readHash(); compute(); });
}

async function main() {
  await start();
  const taken = ask("data", ...files.data.map((row) => row.map(clean).join("\t")));
  if (taken.problem) {
    throw new Error(taken.problem);
  }
  description = ask("describe");
  $("version").textContent = description.version;
  $("dates").textContent = files.dates.join("; ") + ".";
  placeSettings();
  makeBar();
  makeForms();
  readHash();
  compute();
  document.body.dataset.ready = "yes";
}

main().catch((error) => {
  $("problem").hidden = false;
  $("problem").textContent = `The page cannot compute: ${error.message}`;
  throw error;
});
