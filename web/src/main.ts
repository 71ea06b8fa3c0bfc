// SPDX-License-Identifier: Apache-2.0 OR MIT
// The page: controls, the clock, and what is shown of the runs.

import "./style.css";
import { read, type Setup, setup, write } from "./address";
import { CONTROLS, gainText, HELP, KEYS, pages, SPEEDS, usable } from "./controls";
import { Refused } from "./engine";
import { type Event, events } from "./events";
import { LESSONS, sceneOf, sceneSetup, showLesson } from "./lessons";
import { colour, dash, Extent, LIMIT, onScheme } from "./plots";
import { newExtents, Run } from "./run";
import {
  burst,
  type Change,
  DURATION_US,
  exported,
  gainsOf,
  type Key,
  MOST_BURSTS,
  PROTOCOLS,
  SCENARIOS,
  type Settings,
  SLOTS,
  Slots,
} from "./scenarios";
import { sentences, showTable } from "./table";

/** Simulated in one go: short enough to keep to what a frame may take. */
const CHUNK_US = 10_000;
/** The part of a frame's time that simulation may take. */
const BUDGET_MS = 9;
/** How often the clock's text changes: each change lays out the page anew. */
const CLOCK_MS = 100;
/** How often what is dragged is set. */
const THROTTLE_MS = 100;
/** Events in the list. */
const LISTED = 5;

/** The documentation's site has the lab in a folder of its own. A page that stands alone names the file instead. */
const SITE = /\/lab\/(index\.html)?$/.test(location.pathname) ? "../" : undefined;

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;

// The selection, and the progress of the runs.
let { id, names, speed, settings }: Setup = setup("five");
let scene: ReturnType<typeof sceneOf>;
/** As the run began. */
let begun: Settings = { ...settings };
let changes: Change[] = [];
/** Changes of a link or a scene, which are still to come. */
let toCome: Change[] = [];
let happened: Event[] = [];
let slots = new Slots(SCENARIOS[id], begun.flows);
let runs: Run[] = [];
let extents = newExtents(() => new Extent());
let now_us = 0;
/** The scene of a lesson stops here. */
let stop_us = Number.POSITIVE_INFINITY;
let paused = false;
let cutFrom: number | undefined;
let generation = 0;

const scenario = () => SCENARIOS[id];
const live = () => slots.live().filter((slot) => slots.starts[slot]! < now_us);
const note = (text: string) => {
  element("note").textContent = text;
};

// ---- what changes while it runs

function limits(key: Key): { least: number; most: number; step: number } {
  if (key === "rate" && scenario().rates) return { least: 0, most: scenario().rates!.length - 1, step: 1 };
  return CONTROLS[key];
}
/** Where a slider stands for a value; alpha and beta stand at the first default. */
function toSlider(key: Key, value: number | undefined): number {
  if (value === undefined) return names.map((name) => gainsOf(PROTOCOLS[name])).find((gains) => gains)?.[key as "alpha" | "beta"] ?? 0;
  return key === "rate" && scenario().rates ? Math.max(scenario().rates!.indexOf(value), 0) : value;
}
const fromSlider = (key: Key, value: number) => (key === "rate" && scenario().rates ? scenario().rates![value] : value);

/** Tells all runs of a change, now. */
function apply(key: Key | "burst", value: number): void {
  const of = key === "burst" ? burst(value, now_us) : key === "flows" ? slots.become(value, now_us) : scenario().keys(key, value);
  if (of === undefined) {
    const { label, text } = CONTROLS[key as Key];
    settings[key as Key] = value;
    note(`${label} cannot change during a run of this scenario. The run was restarted with ${text(value)}.`);
    void begin(settings, []);
    return;
  }
  try {
    for (const run of runs) {
      // The samples until now go with the settings until now.
      run.look(now_us, settings, slots);
      if ((key === "alpha" || key === "beta") && !gainsOf(run.protocol)) continue;
      for (const [name, text] of of) run.engine.set(name, text);
    }
    if (key !== "burst") settings[key] = value;
    changes.push([now_us, key, value]);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    note(`Not changed: ${error.message}`);
  }
  showControls();
  if (paused) drawAll();
}

const waiting = new Map<Key, number>();
let lastApplied = 0;

function applyWaiting(at_ms: number): void {
  if (waiting.size === 0 || at_ms - lastApplied < THROTTLE_MS) return;
  lastApplied = at_ms;
  const all = [...waiting];
  waiting.clear();
  for (const [key, value] of all) if (value !== settings[key]) apply(key, value);
}

function addFlow(): void {
  if (slots.free() === 0) {
    note(`This run has used all its ${SLOTS} flows. Restart it to add more.`);
    return;
  }
  apply("flows", slots.live().length + 1);
}

function addBurst(): void {
  const number = changes.filter(([, key]) => key === "burst").length + 1;
  if (number > MOST_BURSTS) {
    note(`This run has used all its ${MOST_BURSTS + 1} bursts. Restart it to add more.`);
    return;
  }
  apply("burst", number);
}

function cut(): void {
  const rates = scenario().rates;
  if (cutFrom === undefined) {
    cutFrom = settings.rate;
    apply("rate", rates ? rates[0] : Math.max(1, Math.round(settings.rate / 4)));
  } else {
    apply("rate", cutFrom);
    cutFrom = undefined;
  }
  showControls();
}

// ---- beginning

async function begin(from: Settings, changesToCome: Change[]): Promise<void> {
  generation += 1;
  const mine = generation;
  begun = { ...from };
  const started: Run[] = [];
  try {
    for (const name of names) started.push(await Run.start(id, scenario(), begun, PROTOCOLS[name]));
  } catch (error) {
    note(`The scenario cannot be run: ${(error as Error).message}`);
    return;
  }
  if (mine !== generation) return;
  settings = { ...begun };
  stop_us = scene ? scene.scene.until_s * 1e6 : Number.POSITIVE_INFINITY;
  changes = [];
  toCome = changesToCome;
  slots = new Slots(scenario(), begun.flows);
  now_us = 0;
  cutFrom = undefined;
  runs = started;
  happened = [];
  showEvents(happened);
  extents = newExtents(() => new Extent());
  showRuns();
  showControls();
  showNumbers();
}

function showRuns(): void {
  const homes = runs.map(() => Object.assign(document.createElement("article"), { className: "run" }));
  element("runs").replaceChildren(...homes);
  runs.forEach((run, at) => {
    homes[at].setAttribute("aria-label", run.protocol.label);
    run.show(homes[at], extents);
  });
  drawAll();
}

// ---- time

let lastFrame = 0;
let frames = 0;
let framesSince = 0;
let rate_fps = 0;
let busy_ms = 0;
let share = 0;
let behind = false;
let lastClock = 0;
let lastNumbers = 0;
let lastSpoken = 0;

/** Runs on to `until`, or as far as the frame's time allows. */
function simulate(until: number, began: number): void {
  while (now_us < until) {
    const next = toCome[0];
    const stop = Math.min(until, now_us + CHUNK_US, next ? Math.max(next[0], now_us) : until);
    if (stop > now_us) for (const run of runs) run.engine.step(stop);
    now_us = stop;
    while (toCome.length > 0 && toCome[0][0] <= now_us) {
      const [, key, value] = toCome.shift()!;
      apply(key, value);
    }
    if (performance.now() - began > BUDGET_MS) break;
  }
}

function frame(at_ms: number): void {
  requestAnimationFrame(frame);
  const passed = Math.min(at_ms - lastFrame, 100);
  lastFrame = at_ms;
  frames += 1;
  if (at_ms - framesSince >= 1000) {
    rate_fps = (frames * 1000) / (at_ms - framesSince);
    share = busy_ms / (at_ms - framesSince);
    [frames, framesSince, busy_ms] = [0, at_ms, 0];
    showPace();
  }
  if (runs.length === 0) return;
  applyWaiting(at_ms);
  if (paused || now_us >= DURATION_US) return;
  const began = performance.now();
  const until = Math.min(DURATION_US, stop_us, now_us + Math.round(passed * 1000 * speed));
  simulate(until, began);
  behind = now_us < until;
  for (const run of runs) run.look(now_us, settings, slots);
  busy_ms += performance.now() - began;
  drawAll();
  if (at_ms - lastNumbers > 500) {
    lastNumbers = at_ms;
    showNumbers();
    if (element<HTMLInputElement>("speak").checked && performance.now() - lastSpoken > 5000) speak();
  }
  if (now_us >= stop_us) {
    stop_us = Number.POSITIVE_INFINITY;
    setPaused(true);
    note(`The scene stops here, at ${now_us / 1e6} s. Press Continue to run on.`);
  }
  if (now_us >= DURATION_US) note("The run is over. Press Restart to begin again.");
}

function drawAll(): void {
  if (paused || now_us === 0 || performance.now() - lastClock > CLOCK_MS) {
    lastClock = performance.now();
    element("now").textContent = `${(now_us / 1e6).toFixed(speed < 0.2 ? 3 : 1)} s`;
  }
  // Both columns have the same axes.
  extents.forEach((extent, which) => extent.update(Math.max(0, ...runs.flatMap((run) => run.rows.map((row) => row.most[which])))));
  const now = events(scenario(), begun, slots, changes, now_us);
  if (now.length !== happened.length) showEvents(now);
  happened = now;
  for (const run of runs) run.draw(now_us / 1e6, happened);
}

function showEvents(all: Event[]): void {
  const items = all.slice(-LISTED).reverse();
  element("events").replaceChildren(
    ...items.map(({ at_us, text }) => Object.assign(document.createElement("li"), { textContent: `${(at_us / 1e6).toFixed(1)} s: ${text}` })),
  );
}

function setPaused(to: boolean): void {
  paused = to;
  element("pause").textContent = paused ? "Continue" : "Pause";
  showPace();
  if (paused) {
    drawAll();
    showNumbers();
    speak();
  }
}

// ---- what is shown

function showPace(): void {
  const pace = paused ? "paused" : behind ? "as fast as this machine can" : `${speed} × real time`;
  element("pace").textContent = pace;
}

function showControls(): void {
  for (const key of KEYS) {
    const input = element<HTMLInputElement>(key);
    const { least, most, step } = limits(key);
    Object.assign(input, { min: `${least}`, max: `${most}`, step: `${step}`, disabled: !usable(scenario(), names, key) });
    if (!waiting.has(key)) input.value = `${toSlider(key, settings[key])}`;
    showValue(key);
  }
  element(`label-rate`).textContent = scenario().rateOf ?? "Rate (follows the trace)";
  element<HTMLButtonElement>("drop").disabled = slots.free() === 0;
  element("burst").hidden = !scenario().bursts;
  const cutter = element<HTMLButtonElement>("cut");
  cutter.disabled = !usable(scenario(), names, "rate");
  cutter.textContent = cutFrom === undefined ? "Cut the rate" : `Restore ${cutFrom} Mb/s`;
  showLegend();
  showText();
}

function showLegend(): void {
  const lines = (runs[0]?.lines ?? []).filter((line) => line.slot === undefined || slots.starts[line.slot] !== undefined);
  const limits = scenario().link === "cell.ap" ? "buffer" : "capacity, buffer";
  const items = [...lines, { name: limits, line: LIMIT }].map(({ name, line }) => {
    const stroke = `stroke="${colour(line)}" stroke-width="3" stroke-dasharray="${dash(line)?.join(" ") ?? ""}"`;
    return [name, `<svg aria-hidden="true"><line x1="0" x2="100%" y1="50%" y2="50%" ${stroke}/></svg>`];
  });
  const event = `<svg class="mark" aria-hidden="true"><line x1="50%" x2="50%" y1="0" y2="100%" stroke="currentColor" stroke-dasharray="3 2"/></svg>`;
  element("legend").replaceChildren(
    ...[...items, ["event", event]].map(([name, picture]) => {
      const item = document.createElement("span");
      item.innerHTML = picture;
      item.append(name);
      return item;
    }),
  );
}

function showValue(key: Key): void {
  const input = element<HTMLInputElement>(key);
  const moved = waiting.get(key);
  const value = moved ?? settings[key];
  let text = CONTROLS[key].text(value ?? 0);
  if (key === "alpha" || key === "beta") text = gainText(key, value, names);
  else if (!usable(scenario(), names, key)) text = "varies";
  element(`value-${key}`).textContent = text;
  input.setAttribute("aria-valuetext", text);
}

function showText(): void {
  element("text").textContent = exported(id, begun, PROTOCOLS[names[0]], slots, changes);
}

const showNumbers = () => showTable(element("numbers"), runs, live());

function speak(): void {
  lastSpoken = performance.now();
  element("spoken").textContent = sentences(runs, live(), now_us);
}

// ---- what is taken along

// ---- what is taken along

async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    element("copied").textContent = `${what} is on the clipboard.`;
  } catch {
    element("copied").textContent = `The browser does not let this page write to the clipboard. ${what}: ${text}`;
  }
}

// ---- the controls themselves

function fill(select: HTMLSelectElement, options: [string, string][], chosen: string): void {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

function showChoices(): void {
  fill(element("scenario"), Object.entries(SCENARIOS).map(([name, { title }]) => [name, title]), id);
  const protocols = scenario().protocols.map((name): [string, string] => [name, PROTOCOLS[name].label]);
  names.forEach((name, at) => fill(element(`protocol${at}`), protocols, name));
  element("about").textContent = scenario().about;
  const at = SPEEDS.indexOf(speed);
  element<HTMLInputElement>("speed").value = `${at}`;
  showSpeed();
}

function showSpeed(): void {
  const text = `${speed} × real time`;
  element("value-speed").textContent = text;
  element("speed").setAttribute("aria-valuetext", text);
}

/** Explains a control: a button beside its label, and what it opens. */
function makeHelp(key: string, label: string): void {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "help", textContent: "?" });
  button.setAttribute("aria-label", `Explain: ${label}`);
  button.setAttribute("popovertarget", `help-${key}`);
  const box = Object.assign(document.createElement("div"), { id: `help-${key}`, className: "explain", popover: "auto" });
  box.setAttribute("role", "dialog");
  box.setAttribute("aria-label", label);
  box.addEventListener("beforetoggle", () => {
    const links = pages(key, scenario(), names).map(([title, page]) => {
      const item = document.createElement("li");
      if (SITE === undefined) item.textContent = `${title}, in docs/${page.replace(/\.html.*/, ".md")}`;
      else item.append(Object.assign(document.createElement("a"), { href: SITE + page, textContent: title, target: "_blank" }));
      return item;
    });
    const list = document.createElement("ul");
    list.append(...links);
    const heading = Object.assign(document.createElement("h2"), { textContent: label });
    box.replaceChildren(heading, Object.assign(document.createElement("p"), { textContent: HELP[key] }), list);
  });
  element(`label-${key}`).closest("label")!.after(button, box);
}

function makeSlider(key: string, label: string): HTMLInputElement {
  const home = document.createElement("div");
  home.innerHTML = `<div class="row"><label id="label-${key}" for="${key}"></label><output id="value-${key}" for="${key}"></output></div>`;
  const input = Object.assign(document.createElement("input"), { type: "range", id: key });
  home.append(input);
  element("sliders").append(home);
  element(`label-${key}`).textContent = label;
  makeHelp(key, label);
  return input;
}

function wire(): void {
  for (const key of KEYS) {
    makeSlider(key, CONTROLS[key].label).addEventListener("input", (event) => {
      waiting.set(key, fromSlider(key, Number((event.target as HTMLInputElement).value)));
      note("");
      showValue(key);
    });
  }
  const pace = makeSlider("speed", "Speed");
  Object.assign(pace, { min: "0", max: `${SPEEDS.length - 1}`, step: "1" });
  pace.addEventListener("input", () => {
    speed = SPEEDS[Number(pace.value)];
    showSpeed();
    showPace();
  });
  makeHelp("scenario", "Scenario");
  makeHelp("protocol0", "First protocol");
  makeHelp("protocol1", "Second protocol");
  element("scenario").addEventListener("change", (event) => {
    location.hash = write({ ...setup((event.target as HTMLSelectElement).value), speed });
  });
  [0, 1].forEach((at) =>
    element(`protocol${at}`).addEventListener("change", (event) => {
      names[at] = (event.target as HTMLSelectElement).value;
      note("");
      void (scene ? begin(begun, [...(scene.scene.changes ?? [])]) : begin(settings, []));
    }),
  );
  element("pause").addEventListener("click", () => setPaused(!paused));
  element("restart").addEventListener("click", () => {
    if (scene) goToAddress();
    else open({ id, names, settings, speed, changes: [] });
  });
  element("drop").addEventListener("click", addFlow);
  element("burst").addEventListener("click", addBurst);
  element("cut").addEventListener("click", cut);
  element("copylink").addEventListener("click", () => {
    history.replaceState(null, "", write({ id, names, settings: begun, speed, changes: [...changes, ...toCome] }));
    void copy(location.href, "The link");
  });
  [0, 1].forEach((at) =>
    element(`copy${at}`).addEventListener("click", () =>
      copy(exported(id, begun, PROTOCOLS[names[at]], slots, changes), "The scenario"),
    ),
  );
  document.addEventListener("keydown", (event) => {
    const own = (event.target as Element).closest("button, select, summary, input:not([type=range]), a");
    if (event.key === " " && own === null && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      setPaused(!paused);
    }
  });
  addEventListener("hashchange", goToAddress);
  onScheme(() => {
    showRuns();
    showControls();
  });
}

/** Begins what the page's address says: a scene of a lesson, or a run. */
function goToAddress(): void {
  scene = sceneOf(location.hash);
  showLesson(scene);
  open(scene ? sceneSetup(scene.scene) : read(location.hash));
}

function open(to: Setup): void {
  ({ id, names, speed, settings } = to);
  waiting.clear();
  note("");
  showChoices();
  if (paused) setPaused(false);
  void begin(settings, to.changes);
}

wire();
goToAddress();
requestAnimationFrame(frame);

// For the browser's test: what is reckoned, apart from how it is drawn.
Object.assign(window, {
  flowstampLab: {
    state: () => ({ id, names, now_us, paused, fps: rate_fps, share, changes, settings, generation }),
    events: () => happened,
    lessons: LESSONS,
    numbers: () =>
      runs.map((run) => {
        const { flows, ...numbers } = run.numbers(live());
        return { ...numbers, ...Object.fromEntries(run.lines.map(({ name }, at) => [name, flows[at]])) };
      }),
    rows: () => runs.map(({ rows }) => rows),
    explained: (key: string, of: [string, string]) => pages(key, scenario(), of),
    axes: () => runs.map((run) => run.charts.map(({ canvas, axis }) => ({ ...axis, page_x: canvas.getBoundingClientRect().left }))),
    digests: () => runs.map((run) => run.engine.digest()),
    goTo: (time_us: number) => {
      setPaused(true);
      while (now_us < time_us) simulate(time_us, performance.now());
      for (const run of runs) run.look(now_us, settings, slots);
      drawAll();
      showNumbers();
    },
  },
});
