// SPDX-License-Identifier: Apache-2.0 OR MIT
// The page: controls, the clock, and what is shown of the runs.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { Refused } from "./engine";
import { colour, dash, Extent, onScheme } from "./plots";
import { Run } from "./run";
import {
  burst,
  type Change,
  DURATION_US,
  exported,
  type Key,
  MOST_BURSTS,
  PROTOCOLS,
  SCENARIOS,
  type Settings,
  SLOTS,
  Slots,
} from "./scenarios";

const SPEEDS = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4, 8];
/** Simulated in one go: short enough to keep to what a frame may take. */
const CHUNK_US = 10_000;
/** Of a frame's time what simulating may take. */
const BUDGET_MS = 9;
/** How often what is dragged is set. */
const THROTTLE_MS = 100;

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;

interface Control {
  label: string;
  least: number;
  most: number;
  step: number;
  text(value: number): string;
}
const CONTROLS: Record<Key, Control> = {
  rate: { label: "Rate", least: 1, most: 100, step: 1, text: (v) => `${v} Mb/s` },
  rtt: { label: "Round-trip time", least: 20, most: 300, step: 10, text: (v) => `${v} ms` },
  buffer: { label: "Buffer", least: 10, most: 1000, step: 10, text: (v) => `${v} kB` },
  alpha: { label: "Router's α", least: 0.05, most: 1, step: 0.05, text: (v) => v.toFixed(2) },
  beta: { label: "Router's β", least: 0.05, most: 1, step: 0.002, text: (v) => v.toFixed(3) },
  flows: { label: "Number of flows", least: 1, most: SLOTS, step: 1, text: (v) => `${v}` },
};
const KEYS = Object.keys(CONTROLS) as Key[];

// What is chosen, and how far the runs are.
let id = "five";
let names: [string, string] = [...SCENARIOS[id].compared];
/** As the run began, and now. */
let begun: Settings = { ...SCENARIOS[id].settings };
let settings: Settings = { ...begun };
let changes: Change[] = [];
/** Changes of a link, which are still to come. */
let toCome: Change[] = [];
let slots = new Slots(SCENARIOS[id], begun.flows);
let runs: Run[] = [];
let extents = [new Extent(), new Extent(), new Extent()];
let now_us = 0;
let speed = 1;
let paused = false;
let cutFrom: number | undefined;
let generation = 0;

const scenario = () => SCENARIOS[id];
const note = (text: string) => {
  element("note").textContent = text;
};

// ---- what changes while it runs

function limits(key: Key): { least: number; most: number; step: number } {
  if (key === "rate" && scenario().rates) return { least: 0, most: scenario().rates!.length - 1, step: 1 };
  return CONTROLS[key];
}
const toSlider = (key: Key, value: number) =>
  key === "rate" && scenario().rates ? Math.max(scenario().rates!.indexOf(value), 0) : value;
const fromSlider = (key: Key, value: number) => (key === "rate" && scenario().rates ? scenario().rates![value] : value);

function usable(key: Key): boolean {
  if (key === "rate") return scenario().rateOf !== undefined;
  if (key === "alpha" || key === "beta") return names.some((name) => PROTOCOLS[name].gains);
  return true;
}

/** Tells all runs of a change, now. */
function apply(key: Key | "burst", value: number): void {
  const of = key === "burst" ? burst(value, now_us) : key === "flows" ? slots.become(value, now_us) : scenario().keys(key, value);
  if (of === undefined) {
    settings[key as Key] = value;
    note(`${CONTROLS[key as Key].label} cannot change while this scenario runs: it was begun anew with ${CONTROLS[key as Key].text(value)}.`);
    void begin(settings, []);
    return;
  }
  try {
    for (const run of runs) {
      if ((key === "alpha" || key === "beta") && !run.protocol.gains) continue;
      for (const [name, text] of of) run.engine.set(name, text);
    }
    if (key !== "burst") settings[key] = value;
    changes.push([now_us, key, value]);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    note(`Not changed: ${error.message}`);
  }
  showControls();
}

const waiting = new Map<Key, number>();
let lastApplied = 0;

function setLater(key: Key, value: number): void {
  waiting.set(key, value);
}

function applyWaiting(at_ms: number): void {
  if (waiting.size === 0 || at_ms - lastApplied < THROTTLE_MS) return;
  lastApplied = at_ms;
  const all = [...waiting];
  waiting.clear();
  for (const [key, value] of all) if (value !== settings[key]) apply(key, value);
}

function addFlow(): void {
  const more = slots.live().length + 1;
  if (slots.free() === 0) {
    note(`This run has had its ${SLOTS} flows. Restart begins anew.`);
    return;
  }
  apply("flows", more);
  note(`A flow joined at ${(now_us / 1e6).toFixed(1)} s.`);
}

function addBurst(): void {
  const number = changes.filter(([, key]) => key === "burst").length + 1;
  if (number > MOST_BURSTS) {
    note(`This run has had its ${MOST_BURSTS + 1} bursts. Restart begins anew.`);
    return;
  }
  apply("burst", number);
  note(`A burst of thirty transfers began at ${(now_us / 1e6).toFixed(1)} s.`);
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
  changes = [];
  toCome = changesToCome;
  slots = new Slots(scenario(), begun.flows);
  now_us = 0;
  cutFrom = undefined;
  for (const run of runs) run.hide();
  runs = started;
  extents = [new Extent(), new Extent(), new Extent()];
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
let turn = 0;
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
  const until = Math.min(DURATION_US, now_us + Math.round(passed * 1000 * speed));
  simulate(until, began);
  behind = now_us < until;
  let fresh = false;
  for (const run of runs) fresh = run.look(now_us) || fresh;
  busy_ms += performance.now() - began;
  for (const run of runs) run.drawWire();
  showClock();
  // One chart of each run in a frame: together they would take more than a frame has.
  const data = runs.map((run) => run.data(slots.starts, slots.stops));
  if (fresh) measure(data);
  turn = (turn + 1) % 3;
  runs.forEach((run, number) => run.drawChart(turn, data[number][turn], now_us / 1e6));
  if (at_ms - lastNumbers > 500) {
    lastNumbers = at_ms;
    showNumbers();
  }
  if (now_us >= DURATION_US) {
    note("The run is over. Restart begins anew.");
    drawAll();
  }
}

/** Both columns have the same axes. */
function measure(data: (number | null)[][][][]): void {
  extents.forEach((extent, which) => {
    let most = 0;
    for (const run of data) for (const line of run[which].slice(1)) for (const value of line) most = Math.max(most, value ?? 0);
    extent.update(most);
  });
}

function showClock(): void {
  element("now").textContent = `${(now_us / 1e6).toFixed(speed < 0.2 ? 3 : 1)} s`;
}

function drawAll(): void {
  showClock();
  const data = runs.map((run) => run.data(slots.starts, slots.stops));
  measure(data);
  runs.forEach((run, number) => {
    run.drawWire();
    data[number].forEach((part, which) => run.drawChart(which, part, now_us / 1e6));
  });
}

function setPaused(to: boolean): void {
  paused = to;
  element("pause").textContent = paused ? "Go on" : "Pause";
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
  element("pace").textContent = `${pace}; ${Math.round(rate_fps)} frames/s, ${Math.round(100 * share)}% of the time simulating`;
}

function showControls(): void {
  for (const key of KEYS) {
    const input = element<HTMLInputElement>(key);
    const { least, most, step } = limits(key);
    Object.assign(input, { min: `${least}`, max: `${most}`, step: `${step}`, disabled: !usable(key) });
    if (!waiting.has(key)) input.value = `${toSlider(key, settings[key])}`;
    showValue(key);
  }
  element(`label-rate`).textContent = scenario().rateOf ?? "Rate (follows the trace)";
  const live = slots.live().length;
  element<HTMLButtonElement>("drop").disabled = slots.free() === 0;
  element("burst").hidden = !scenario().bursts;
  const cutter = element<HTMLButtonElement>("cut");
  cutter.disabled = !usable("rate");
  const least = scenario().rates ? `Slow station 1 to ${scenario().rates![0]} Mb/s` : "Cut the rate to a quarter";
  cutter.textContent = cutFrom === undefined ? least : `Restore ${cutFrom} Mb/s`;
  element("legend").replaceChildren(
    ...(runs[0]?.lines ?? [])
      .filter((line) => line.slot === undefined || slots.starts[line.slot] !== undefined)
      .map((line) => {
        const item = document.createElement("span");
        const stroke = `stroke="${colour(line.line)}" stroke-width="3" stroke-dasharray="${dash(line.line)?.join(" ") ?? ""}"`;
        item.innerHTML = `<svg aria-hidden="true"><line x1="0" x2="100%" y1="50%" y2="50%" ${stroke}/></svg>`;
        item.append(line.name);
        return item;
      }),
  );
  showText();
  element("flows").setAttribute("aria-description", `${live} now`);
}

function showValue(key: Key): void {
  const input = element<HTMLInputElement>(key);
  const value = fromSlider(key, Number(input.value));
  const own = (key === "alpha" || key === "beta") && value === scenario().settings[key] && !changes.some(([, k]) => k === key);
  const text = !usable(key) && key === "rate" ? "varies" : own ? "its own" : CONTROLS[key].text(value);
  element(`value-${key}`).textContent = text;
  input.setAttribute("aria-valuetext", text);
}

function showText(): void {
  element("text").textContent = exported(id, begun, PROTOCOLS[names[0]], slots, changes);
}

const fixed = (value: number | undefined, digits: number) => (value === undefined ? "–" : value.toFixed(digits));

function showNumbers(): void {
  const live = slots.live().filter((slot) => slots.starts[slot]! < now_us);
  const all = runs.map((run) => run.numbers(live));
  const used = scenario().link === "cell.ap" ? "Air in use" : "Link in use";
  const rows: [string, string[]][] = [
    ["Throughput of all", all.map((n) => `${fixed(n.throughput, 2)} Mb/s`)],
    [used, all.map((n) => `${fixed(100 * n.used, 1)}%`)],
    ["Mean queue", all.map((n) => `${fixed(n.queue, 1)} kB`)],
    ["Mean RTT of the flows", all.map((n) => (n.rtt === undefined ? "–" : `${fixed(n.rtt, 1)} ms`))],
    ["Jain's index of the flows", all.map((n) => fixed(n.jain, 3))],
    ["Packets lost since the start", all.map((n) => `${n.drops}`)],
  ];
  runs[0]?.lines.forEach((line, at) => {
    if (line.slot === undefined || live.includes(line.slot)) {
      rows.push([`Throughput, ${line.name}`, all.map((n) => `${fixed(n.flows[at], 2)} Mb/s`)]);
    }
  });
  const cell = (kind: "th" | "td", text: string, scope?: string) => {
    const made = document.createElement(kind);
    made.textContent = text;
    if (scope) made.setAttribute("scope", scope);
    return made;
  };
  const row = (...cells: HTMLElement[]) => {
    const made = document.createElement("tr");
    made.append(...cells);
    return made;
  };
  const head = document.createElement("thead");
  head.append(row(cell("th", "Quantity", "col"), ...runs.map((run) => cell("th", run.protocol.label, "col"))));
  const body = document.createElement("tbody");
  body.append(...rows.map(([name, values]) => row(cell("th", name, "row"), ...values.map((value) => cell("td", value)))));
  element("numbers").replaceChildren(head, body);
  if (element<HTMLInputElement>("speak").checked && performance.now() - lastSpoken > 5000) speak();
}

function speak(): void {
  lastSpoken = performance.now();
  const live = slots.live().filter((slot) => slots.starts[slot]! < now_us);
  element("spoken").textContent = [
    `At ${(now_us / 1e6).toFixed(1)} seconds, ${live.length} flows.`,
    ...runs.map((run) => {
      const n = run.numbers(live);
      return `${run.protocol.label}: ${fixed(n.throughput, 1)} megabits per second, queue ${fixed(n.queue, 0)} kilobytes, fairness ${fixed(n.jain, 2)}, ${n.drops} lost.`;
    }),
  ].join(" ");
}

// ---- what is taken along

/** The part of the address that restores what is here. */
function link(): string {
  const all = [...changes, ...toCome].map(([at, key, value]) => `${at}:${key}:${value}`).join(",");
  const parts = new URLSearchParams({ scenario: id, left: names[0], right: names[1], speed: `${speed}` });
  for (const key of KEYS) parts.set(key, `${begun[key]}`);
  if (all) parts.set("changes", all);
  return `#${parts}`;
}

/** Reads such a part; what makes no sense is left at its default. Returns the changes to come. */
function restore(hash: string): Change[] {
  const parts = new URLSearchParams(hash.slice(1));
  const has = <T extends object>(of: T, name: string | null): name is string & keyof T => name !== null && Object.hasOwn(of, name);
  const chosen = parts.get("scenario");
  if (has(SCENARIOS, chosen)) id = chosen;
  names = [...scenario().compared];
  (["left", "right"] as const).forEach((side, at) => {
    const name = parts.get(side);
    if (name !== null && scenario().protocols.includes(name)) names[at] = name;
  });
  settings = { ...scenario().settings };
  const valid = (key: Key, value: number) => {
    if (key === "rate" && scenario().rates) return scenario().rates!.includes(value);
    return value >= CONTROLS[key].least && value <= CONTROLS[key].most && (key !== "flows" || Number.isInteger(value));
  };
  for (const key of KEYS) {
    const value = Number(parts.get(key) ?? Number.NaN);
    if (valid(key, value)) settings[key] = value;
  }
  const wanted = Number(parts.get("speed") ?? Number.NaN);
  if (SPEEDS.includes(wanted)) speed = wanted;
  const found: Change[] = [];
  for (const text of (parts.get("changes") ?? "").split(",")) {
    const [at, key, value] = text.split(":");
    const time = Number(at);
    if (!Number.isInteger(time) || time < 0 || time >= DURATION_US - 1000 || !Number.isFinite(Number(value))) continue;
    if (key === "burst" ? scenario().bursts : KEYS.includes(key as Key) && usable(key as Key) && valid(key as Key, Number(value))) {
      found.push([time, key as Key | "burst", Number(value)]);
    }
  }
  return found.sort(([a], [b]) => a - b);
}

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

function makeSlider(key: string, label: string): HTMLInputElement {
  const home = document.createElement("div");
  home.innerHTML = `<label for="${key}"><span class="row"><span id="label-${key}"></span><output id="value-${key}" for="${key}"></output></span></label>`;
  const input = Object.assign(document.createElement("input"), { type: "range", id: key });
  home.append(input);
  element("sliders").append(home);
  element(`label-${key}`).textContent = label;
  return input;
}

function wire(): void {
  for (const key of KEYS) {
    makeSlider(key, CONTROLS[key].label).addEventListener("input", (event) => {
      setLater(key, fromSlider(key, Number((event.target as HTMLInputElement).value)));
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
  element("scenario").addEventListener("change", (event) => {
    id = (event.target as HTMLSelectElement).value;
    names = [...scenario().compared];
    waiting.clear();
    note("");
    showChoices();
    void begin(scenario().settings, []);
  });
  [0, 1].forEach((at) =>
    element(`protocol${at}`).addEventListener("change", (event) => {
      names[at] = (event.target as HTMLSelectElement).value;
      note("");
      void begin(settings, []);
    }),
  );
  element("pause").addEventListener("click", () => setPaused(!paused));
  element("restart").addEventListener("click", () => {
    note("");
    void begin(settings, []);
  });
  element("drop").addEventListener("click", addFlow);
  element("burst").addEventListener("click", addBurst);
  element("cut").addEventListener("click", cut);
  element("copylink").addEventListener("click", () => {
    history.replaceState(null, "", link());
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
  addEventListener("hashchange", () => {
    const changesToCome = restore(location.hash);
    showChoices();
    void begin(settings, changesToCome);
  });
  onScheme(() => {
    showRuns();
    showControls();
  });
}

wire();
const changesToCome = restore(location.hash);
showChoices();
void begin(settings, changesToCome);
requestAnimationFrame(frame);

// For the browser's test: what is reckoned, apart from how it is drawn.
Object.assign(window, {
  flowstampLab: {
    state: () => ({ id, names, now_us, paused, fps: rate_fps, share, changes, settings, generation }),
    digests: () => runs.map((run) => run.engine.digest()),
    goTo: (time_us: number) => {
      setPaused(true);
      while (now_us < time_us) simulate(time_us, performance.now());
      for (const run of runs) run.look(now_us);
      drawAll();
      showNumbers();
    },
  },
});
