/* The planner's page. All arithmetic is the planner's own, compiled to WebAssembly; what is here
 * makes forms, tiles, curves and tables of what the models say of themselves. */
"use strict";

/* Headlines: what is needed against what there is, and which answer needs more than it has. */
const HEADLINES = [
  {id: "useful", title: "GPU time that trains", have: "checkpoint.useful", need: "checkpoint.best_useful",
   needText: "at the best interval", more: "points"},
  {id: "write", title: "Write bandwidth", need: "size.bandwidth_needed", have: "size.write_bandwidth"},
  {id: "read", title: "Read bandwidth", need: "mix.read_needed", have: "size.read_bandwidth"},
  {id: "nodes", title: "Storage nodes", need: "size.nodes_needed", have: "size.storage_nodes"},
  {id: "metadata", title: "Metadata targets", need: "metadata.targets_needed",
   have: "metadata.targets_used", model: "metadata"},
];
/* The other figures, by the question that they answer; of each model those that it puts first. */
const GROUPS = [
  ["How do checkpoints behave?", "checkpoint"], ["Does loading keep up?", "loading"],
  ["What storage is needed?", "size"], ["What metadata?", "metadata"], ["What does it cost?", "cost"],
  ["What do several jobs ask?", "mix"], ["What does a KV cache take?", "inference"],
];
/* Rows of "Side by side". */
const COMPARED = [
  "checkpoint.size", "checkpoint.useful", "checkpoint.stall", "checkpoint.best_daly",
  "size.bandwidth_needed", "size.write_bandwidth", "size.nodes_needed", "size.usable",
  "metadata.targets_needed", "loading.stalled", "cost.own_month_all", "cost.break_even",
];
/* Inputs that stand open: section, name, what it is called. GPUs and samples are of the question. */
const OPEN = [
  ["common", "params", "model parameters"], ["run", "gpus", "GPUs"], ["common", "dataset", "data set"],
  ["run", "sample_size", "sample size"], ["run", "samples_per_second", "samples a second"],
  ["common", "interval", "checkpoint interval"], ["common", "storage_nodes", "storage nodes", "nodes that hold drives"],
  ["size", "protection", "protection"], ["common", "target", "target for a checkpoint"],
];
/* What only the question has; inputs of models that it stands for. */
const ASKED = {
  gpus: {help: "in all; 8 a node where that divides", example: "256",
         sets: ["common.nodes", "common.gpus_per_node", "scaling.clients"],
         shown: () => figure("checkpoint.gpus").text},
  sample_size: {help: "empty: token streams", example: "50KiB",
                sets: ["loading.workload", "loading.custom_size"],
                shown: () => figure("loading.sample_size").text},
  samples_per_second: {help: "of one GPU", example: "2500/s",
                       sets: ["loading.workload", "loading.custom_rate"],
                       shown: () => figure("loading.sample_rate").text},
};
const CHARTS = [
  {id: "interval", title: "GPU time that trains, against the checkpoint interval", model: "checkpoint",
   input: "interval", range: "1min..1d:41log", outputs: ["useful"], log: true,
   best: ["best_daly", "best_useful"]},
  {id: "stall", title: "Stall per checkpoint, against bandwidth", model: "checkpoint",
   input: "write_bandwidth", range: "1GB/s..1TB/s:25log", outputs: ["drain"], log: true, logY: true,
   axis: "time until the storage has a checkpoint", target: "target"},
  {id: "utilisation", title: "GPU time that trains, against nodes", model: "checkpoint",
   input: "nodes", range: "1..4096:25log", outputs: ["useful"], log: true},
  {id: "waiting", title: "Wait for metadata, against load", model: "metadata",
   input: "utilisation", range: "5%..99%:48", outputs: ["planned_wait"], logY: true, least: 1e-9,
   axis: "mean wait (M/M/c)"},
  {id: "scaling", title: "Throughput against clients, and what the targets give", model: "scaling",
   input: "clients", range: "1..1024:31log", outputs: ["usl", "amdahl", "quoted", "all_targets"],
   log: true, logY: true, axis: "throughput",
   names: ["USL", "Amdahl", "widely quoted S(N)", "all targets"]},
  {id: "cost", title: "Cost a month, against capacity", model: "cost", input: "capacity",
   range: "10TB..2PB:25log", outputs: ["own_month_all", "managed_month"], log: true, logY: true,
   axis: "cost a month", names: ["own, with what is bought", "managed"]},
];
const PAUSE_MS = 400;

const $ = (id) => document.getElementById(id);
const files = JSON.parse($("files").textContent);
/* What --from and --data of the command gave. */
const given = JSON.parse($("given").textContent);
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

function field(section, input, title) {
  const id = `in-${section}-${input.name}`;
  const path = `${section}.${input.name}`;
  const attributes = {id, name: path, "aria-describedby": `${id}-help`,
                      oninput: (event) => set(path, event.target.value)};
  let control;
  if (input.kind === "choice") {
    control = element("select", attributes, ...input.choices.split("|").map((choice) =>
      element("option", {value: choice, text: choice})));
  } else {
    control = element("input", {...attributes, type: "text", spellcheck: "false",
                                placeholder: input.default});
  }
  return element("div", {class: "field", "data-path": path},
    element("label", {for: id, text: title ?? input.name.replaceAll("_", " ")}), control,
    element("small", {id: `${id}-help`, text: input.help}));
}

function makeForms() {
  const common = commonInputs();
  const once = new Set(common.map((input) => input.name));
  const open = new Set(OPEN.map(([section, name]) => `${section}.${name}`));
  const fields = OPEN.map(([section, name, title, help]) => {
    const input = section === "run" ? {name, kind: "asked", default: "", help: ASKED[name].help}
      : description.models.flatMap((model) => model.inputs).find((one) => one.name === name);
    return field(section, {...input, help: help ?? input.help}, title);
  });
  /* A sample's size and rate are one question. */
  const at = OPEN.findIndex(([, name]) => name === "sample_size");
  fields.splice(at, 2, element("div", {class: "pair", role: "group", "aria-label": "samples"},
    ...fields.slice(at, at + 2)));
  $("inputs").append(element("div", {id: "form-open"}, ...fields));
  const more = element("details", {id: "more"}, element("summary", {text: "more inputs"}));
  const sections = [["common", "of several models", common], ...description.models.map((model) =>
    [model.name, model.name, model.inputs.filter((input) => !once.has(input.name))])];
  for (const [section, title, inputs] of sections) {
    const shown = inputs.filter((input) => !open.has(`${section}.${input.name}`));
    if (shown.length > 0) {
      more.append(element("details", {id: `form-${section}`}, element("summary", {text: title}),
        ...shown.map((input) => field(section, input))));
    }
  }
  $("inputs").append(more);
}

function clearWrong(box) {
  box.classList.remove("wrong");
  box.querySelector("input, select").removeAttribute("aria-invalid");
  box.querySelector(".error")?.remove();
}

/* What an input is now, of its own model or the first that has it. */
function inputText(section, name) {
  if (section === "run") {
    return ASKED[name].shown();
  }
  const model = results.models.find((one) => (section === "common" || one.model === section) &&
    one.inputs.some((input) => input.name === name));
  return model?.inputs.find((input) => input.name === name).text ?? "";
}

/* What the fields say, and what an empty one stands for. */
function showFields() {
  for (const box of document.querySelectorAll(".field")) {
    const control = box.querySelector("input, select");
    const [section, name] = box.dataset.path.split(".");
    const text = settings.get(box.dataset.path) ?? "";
    const now = inputText(section, name);
    clearWrong(box);
    if (control.tagName === "SELECT") {
      control.value = now;
    } else {
      /* "=size.nodes_advised" would say nothing: its value does. */
      const shown = text.startsWith("=") ? "" : text;
      if (control !== document.activeElement) {
        control.value = shown;
      }
      control.placeholder = now;
    }
  }
}

/* A field is the only place of its input: what else sets it goes. */
function set(path, text) {
  const [section, name] = path.split(".");
  const others = section === "run" ? ASKED[name].sets
    : section === "common" ? description.models.map((model) => `${model.name}.${name}`) : [];
  if (text.trim() === "") {
    settings.delete(path);
  } else {
    for (const other of others) {
      settings.delete(other);
    }
    settings.set(path, text);
  }
  compute();
}

/* ---- Results ---- */

let waiting = 0;

/* The last good result stays; what is wrong is told at its field, once the typing pauses. */
function showProblem(problem) {
  const match = /^\[(\w+)\] (\w+)/.exec(problem) ?? /^(--)([\w-]+)/.exec(problem);
  const name = match?.[2].replaceAll("-", "_");
  const box = match && (document.querySelector(`.field[data-path="${match[1]}.${name}"]`) ??
    document.querySelector(`.field[data-path="run.${name}"]`) ??
    [...document.querySelectorAll(".field")].find((one) => one.contains(document.activeElement)));
  $("problem").hidden = Boolean(box);
  $("problem").textContent = box ? "" : problem;
  if (box) {
    box.classList.add("wrong");
    box.querySelector("input, select").setAttribute("aria-invalid", "true");
    box.append(element("small", {class: "error", role: "alert",
      text: problem.replace(/^\[\w+\] /, "")
        .replace(/for example \[\w+\] \w+ = /, "for example ")}));
    box.closest("details:not([open])")?.setAttribute("open", "");
  }
}

function compute() {
  const answer = ask("run", ...settingLines());
  clearTimeout(waiting);
  /* Of a link that is refused there is nothing to keep yet. */
  $("pin").disabled = $("csv").disabled = Boolean(answer.problem) && results === null;
  if (answer.problem) {
    if (results === null) {
      /* Something to see beside the error of a link: the defaults. */
      $("problem").hidden = false;
      $("problem").textContent = `${answer.problem}. What is shown are the defaults.`;
      show(ask("run"));
    } else {
      for (const wrong of document.querySelectorAll(".field.wrong")) {
        clearWrong(wrong);
      }
      waiting = setTimeout(() => showProblem(answer.problem), PAUSE_MS);
    }
    return;
  }
  $("problem").hidden = true;
  show(answer);
  history.replaceState(null, "", hash());
}

function show(answer) {
  results = answer;
  showFields();
  showAnswer();
  showGroups();
  showModels();
  showCompare();
  showCharts();
  showChanged();
}

const modelResult = (name) => results.models.find((model) => model.model === name);

/* A figure, or an input, with its number. */
function figure(path) {
  const [name, output] = path.split(".");
  const model = modelResult(name);
  const meta = model.outputs.find((one) => one.name === output);
  if (!meta) {
    const input = model.inputs.find((one) => one.name === output);
    return {model, meta: {name: output, label: input.help}, value: input.value, text: input.text};
  }
  return {model, meta, ...model.rows[0][output]};
}

function whyButton(model, meta, row) {
  return element("button", {type: "button", class: "why", text: "why",
    "aria-label": `Why: ${meta.label}`, "data-why": `${model.model}.${meta.name}`,
    onclick: () => showWhy(model, meta, row)});
}

const MARKS = {ok: "\u2713", tight: "!", short: "\u2717"};
const setting = (path) => Number((files.data.findLast((row) =>
  `${row[0]}.${row[1]}` === path)?.[2] ?? "85%").replace("%", "")) / 100;

/* ok, tight or short: what is needed against what there is. */
function stateOf(headline, need, have) {
  if (need.value === null || have.value === null) {
    return "short";
  }
  if (headline.more === "points") {
    return need.value - have.value > setting("verdict.loses") ? "short" : "ok";
  }
  if (headline.model) {
    return levelState(modelResult(headline.model).rows[0].verdict.text.split(":")[0]);
  }
  return need.value > have.value * (1 + 1e-9) ? "short"
    : need.value > setting("verdict.tight") * have.value ? "tight" : "ok";
}

/* Of the five in the program's levels; the sentence says which. */
const levelState = (level) => ({ok: "ok", tight: "tight"})[level] ?? "short";

function showAnswer() {
  const {level, verdict} = results.answer;
  const state = levelState(level);
  $("answer").className = `answer ${state}`;
  $("answer").replaceChildren(element("span", {class: "mark", "aria-hidden": "true", text: MARKS[state]}),
    element("span", {text: verdict.replace(/--([a-z][a-z-]*)/g, (_, name) =>
      name.replaceAll("-", " "))}));
  $("tiles").replaceChildren(...HEADLINES.map((headline) => {
    const need = figure(headline.need);
    const have = figure(headline.have);
    const state = stateOf(headline, need, have);
    const text = headline.more ? `${have.text}` : `${need.text} of ${have.text}`;
    return element("div", {class: `tile ${state}`, "data-figure": headline.id},
      element("span", {class: "title", text: headline.title}),
      element("strong", {text}),
      element("span", {class: "state"}, `${MARKS[state]} ${state}`,
        element("span", {class: "rest", text: headline.more ? `, ${need.text} ${headline.needText}`
          : ", needed of what there is"})));
  }));
}

function showGroups() {
  const open = new Set([...document.querySelectorAll("#groups details[open]")].map((one) => one.id));
  const first = $("groups").childElementCount === 0;
  $("groups").replaceChildren(...GROUPS.map(([question, name]) => {
    const model = modelResult(name);
    const details = element("details", {id: `group-${name}`},
      element("summary", {}, element("h3", {text: question})),
      element("p", {class: "verdict", text: model.rows[0].verdict.text}),
      element("table", {}, element("tbody", {}, ...model.outputs.filter((meta) => meta.head)
        .map((meta) => element("tr", {"data-head": `${name}.${meta.name}`},
          element("th", {scope: "row", text: meta.label}),
          element("td", {class: "number", text: model.rows[0][meta.name].text}),
          element("td", {}, whyButton(model, meta, model.rows[0])))))));
    details.open = first ? ["checkpoint", "size", "cost"].includes(name) : open.has(details.id);
    return details;
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
  const cell = (meta, row) => element("td", {}, ...words(row[meta.name].text));
  const why = (meta, row) => element("td", {}, whyButton(model, meta, row));
  /* The shorter side across, as a page is wider than a line is long. */
  const [first, ...others] = model.outputs;
  if (model.outputs.length > model.rows.length) {
    return element("table", {class: "wide"},
      element("thead", {}, element("tr", {}, element("th", {scope: "col", text: first.label}),
        ...model.rows.map((row) => element("th", {scope: "col", text: row[first.name].text})),
        element("th", {scope: "col", text: "why"}))),
      element("tbody", {}, ...others.map((meta) => element("tr", {},
        element("th", {scope: "row", text: meta.label}),
        ...model.rows.map((row) => cell(meta, row)), why(meta, model.rows[0])))));
  }
  return element("table", {class: "wide"},
    element("thead", {}, element("tr", {}, ...model.outputs.map((meta) =>
      element("th", {scope: "col", text: meta.label})), element("th", {scope: "col", text: "why"}))),
    element("tbody", {}, ...model.rows.map((row) => element("tr", {},
      ...model.outputs.map((meta) => cell(meta, row)),
      why(model.outputs.find((meta) => meta.unit !== "words"), row)))));
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

/* Axes that a person reads: round values of the unit, on a scale of factors. */
const ROUND = {
  s: [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 60, 600, 3600, 21600, 86400, 604800],
};

function roundTicks(unit, low, high) {
  const all = ROUND[unit] ?? Array.from({length: 60}, (_, index) => 10 ** (index - 20));
  return all.filter((value) => value >= low * 0.999 && value <= high * 1.001)
    .map((value) => ({value}));
}

/* Lines and points that say where one is: the present input, the target, the best value. */
const marker = {
  id: "marker",
  afterDatasetsDraw(chart) {
    const {ctx, chartArea: area, scales: {x, y}} = chart;
    ctx.save();
    ctx.font = "12px system-ui, sans-serif";
    ctx.fillStyle = colour("--ink");
    for (const mark of chart.options.marks ?? []) {
      ctx.strokeStyle = colour("--ink");
      ctx.setLineDash(mark.dash);
      ctx.beginPath();
      if (mark.y === undefined) {
        const at = x.getPixelForValue(mark.x);
        ctx.moveTo(at, area.top);
        ctx.lineTo(at, area.bottom);
        ctx.textAlign = at > (area.left + area.right) / 2 ? "right" : "left";
        ctx.fillText(mark.text, at + (ctx.textAlign === "left" ? 4 : -4), area.top + 12 + 15 * mark.line);
      } else {
        const at = y.getPixelForValue(mark.y);
        ctx.moveTo(area.left, at);
        ctx.lineTo(area.right, at);
        ctx.textAlign = "left";
        ctx.fillText(mark.text, area.left + 4, at - 4);
      }
      ctx.stroke();
    }
    ctx.restore();
  },
};

/* Of a chart: what is marked on it, within its range. */
function marksOf(chart, data) {
  const model = modelResult(chart.model);
  const present = model.inputs.find((one) => one.name === chart.input);
  const xs = data.points.map((point) => point.x.value);
  const inside = (value) => value !== null && value >= Math.min(...xs) && value <= Math.max(...xs);
  const marks = [];
  if (inside(present.value)) {
    marks.push({x: present.value, text: `now ${present.text}`, dash: [], line: 0});
  }
  if (chart.best) {
    const best = model.rows[0][chart.best[0]];
    if (inside(best.value)) {
      marks.push({x: best.value, text: `best ${best.text}`, dash: [5, 4], line: 1});
    }
  }
  if (chart.target) {
    const target = model.inputs.find((one) => one.name === chart.target);
    marks.push({y: target.value, text: `target ${target.text}`, dash: [5, 4], line: 0});
  }
  return marks;
}

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
  const colours = ["--mark", "--second", "--third", "--fourth"].map(colour);
  const datasets = chart.outputs.map((name, index) => ({
    label: data.labels[index],
    data: data.points.filter((point) => point.y[index].value !== null &&
        (!chart.logY || point.y[index].value > (chart.least ?? 0)))
      .map((point) => ({x: point.x.value, y: point.y[index].value, text: point.y[index].text,
                        at: point.x.text})),
    borderColor: colours[index % colours.length],
    backgroundColor: colours[index % colours.length],
    borderDash: index === 0 ? [] : [6, 2 * index], borderWidth: 2.5, tension: 0, pointRadius: 0,
    pointHitRadius: 8,
  }));
  const old = charts.get(chart.id);
  const scale = (title, unit, log) => ({
    type: log ? "logarithmic" : "linear",
    title: {display: true, text: title, color: ink},
    grid: {color: colour("--line")},
    ticks: {color: ink, maxTicksLimit: 9, maxRotation: 0, autoSkipPadding: 12,
            callback: (value) => tick(value, unit)},
    ...(log ? {afterBuildTicks: (axis) => {
      const ticks = roundTicks(unit, axis.min, axis.max);
      axis.ticks = ticks.length >= 2 ? ticks : axis.ticks;
    }} : {}),
  });
  const options = {
    responsive: true, maintainAspectRatio: false, animation: false, marks: marksOf(chart, data),
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
      {type: "line", data: {datasets}, options, plugins: [marker]}));
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

/* A common setting that one model alone has is that model's, so that it has a field, and a model's
 * own of what several have is common where no other says so. */
function placeSettings() {
  const common = new Set(commonInputs().map((input) => input.name));
  for (const scenario of Object.values(files.scenarios)) {
    scenario.rows = scenario.rows.map(([section, key, text]) => {
      const model = description.models.find((one) => one.inputs.some((input) => input.name === key));
      return [section === "common" && !common.has(key) && model ? model.name : section, key, text];
    });
  }
}

/* Whether the scenario has been changed stands in its name. */
function showChanged() {
  const option = $("scenario").selectedOptions[0];
  const {title} = files.scenarios[option.value];
  option.textContent = isUnchanged() ? title : `${title} (changed)`;
  $("reset").disabled = isUnchanged();
}

const isUnchanged = () => {
  const {rows} = files.scenarios[$("scenario").value];
  return rows.length === settings.size &&
    rows.every(([section, key, text]) => settings.get(`${section}.${key}`) === text);
};

function load(name) {
  for (const option of $("scenario").options) {
    option.textContent = files.scenarios[option.value].title;
  }
  settings = new Map(files.scenarios[name].rows
    .map(([section, key, text]) => [`${section}.${key}`, text]));
}

function hash() {
  if (settings.size === 0) {
    return "#defaults";
  }
  return "#" + (isUnchanged() ? `scenario=${encodeURIComponent($("scenario").value)}`
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

/* "params: 70B, now 405B": inputs in which two sets of settings differ. */
function differences(before, after) {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].filter((path) => before.get(path) !== after.get(path))
    .map((path) => `${path.split(".")[1].replaceAll("_", " ")}: ${before.get(path) ?? "default"}, now ${
      after.get(path) ?? "default"}`);
}

function showCompare() {
  $("compare-section").hidden = pinned.length === 0;
  if (pinned.length === 0) {
    return;
  }
  const now = {title: "now", values: headline(), settings};
  const columns = [...pinned, now];
  const told = (column) => {
    const all = differences(column.settings, settings);
    return column === now ? "" : all.length === 0 ? "nothing differs"
      : all.slice(0, 6).join("; ") + (all.length > 6 ? `; ${all.length - 6} more` : "");
  };
  $("compare").replaceChildren(
    element("thead", {}, element("tr", {}, element("th", {scope: "col", text: "figure"}),
      ...columns.map((column) => element("th", {scope: "col", text: column.title})))),
    element("tbody", {},
      ...COMPARED.map((path) => element("tr", {class: new Set(columns.map((column) =>
        column.values.get(path))).size > 1 ? "differs" : ""},
        element("th", {scope: "row", text: figure(path).meta.label}),
        ...columns.map((column) => element("td", {class: "number", text: column.values.get(path)})))),
      element("tr", {id: "compare-inputs"}, element("th", {scope: "row", text: "inputs that differ"}),
        ...columns.map((column) => element("td", {text: told(column)})))));
}

const headline = () => new Map(COMPARED.map((path) => [path, figure(path).text]));

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
    ...(results ? COMPARED.map((path) => `  ${path} = ${figure(path).text}`) : []), ""].join("\n");
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
                 values: headline(), settings: new Map(settings)});
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => showCharts());
  window.addEventListener("hashchange", () => { readHash(); compute(); });
}

/* A scenario and data of the command's stand first. */
function takeGiven() {
  for (const [section, key, text] of given?.data ?? []) {
    files.data.push([section, key, text]);
  }
  if (given?.scenario) {
    const title = given.scenario.find(([section, key]) =>
      section === "about.scenario" && key === "title")?.[2];
    files.scenarios = {given: {title: title ?? "from the command line",
      rows: given.scenario.filter(([section]) => !section.startsWith("about."))}, ...files.scenarios};
    files.first = "given";
  }
}

async function main() {
  await start();
  takeGiven();
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
