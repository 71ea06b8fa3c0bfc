// SPDX-License-Identifier: Apache-2.0 OR MIT
// Choices as TOML for the simulator: scenarios, protocols, and the values of the controls.

import cellular from "../../examples/data/cellular.down?raw";
import type { Event } from "./events";

export const DURATION_US = 300_000_000;
/** Flows that a run can have in all: those that have not begun wait beyond its end. */
export const SLOTS = 16;
const PARKED = "299999ms";
/** Stations of the Wi-Fi cell, and their data rates. */
const STATION_RATES = [54, 54, 36, 24, 12, 6];
const BURSTS = 6;
const BURST_US = 4_000_000;

export interface Protocol {
  label: string;
  law: string;
  router?: string;
  queue?: string;
}

export const PROTOCOLS: Record<string, Protocol> = {
  xcp: { label: "XCP", law: "xcp", router: "xcp" },
  rcp: { label: "RCP", law: "rcp", router: "rcp" },
  vcp: { label: "VCP", law: "vcp", router: "vcp" },
  "xcp-b": { label: "XCP-b", law: "xcp", router: "xcp-b" },
  pcp: { label: "PCP", law: "pcp", router: "pcp" },
  "reno+red": { label: "Reno, RED", law: "reno", queue: "red" },
  sack: { label: "SACK, drop-tail", law: "sack" },
  cubic: { label: "CUBIC, drop-tail", law: "cubic" },
  "cubic+codel": { label: "CUBIC, CoDel", law: "cubic", queue: "codel" },
  "cubic+fq_codel": { label: "CUBIC, FQ-CoDel", law: "cubic", queue: "fq_codel" },
  bbr: { label: "BBR, drop-tail", law: "bbr" },
};

/** The module's senders and their routers; vite.config.js asks the module for them. */
declare const SENDERS: [law: string, router: string | null][];
// Senders that have no entry above are offered by their names.
for (const [law, router] of SENDERS) {
  const known = Object.values(PROTOCOLS).some((protocol) => protocol.law === law);
  if (!known) PROTOCOLS[law] = { label: law, law, router: router ?? undefined };
}

const WIRED = Object.keys(PROTOCOLS);
/** Their routers know no capacity, because a cell's capacity is unknown. */
const WIRELESS = WIRED.filter((name) => PROTOCOLS[name].router === undefined || name === "xcp-b");

export interface Settings {
  rate: number; // Mb/s
  rtt: number; // ms
  buffer: number; // kB
  /** The router's gains; each law's own if they are not set. */
  alpha?: number;
  beta?: number;
  flows: number;
}
export type Key = keyof Settings;

export interface Scenario {
  title: string;
  about: string;
  /** Its defaults. */
  settings: Settings;
  protocols: string[];
  /** The first two. */
  compared: [string, string];
  /** The link whose queue and packets are shown, and what the page calls it. */
  link: string;
  place: string;
  /** The table of the network in the reference of scenarios. */
  table: "dumbbell" | "parking-lot" | "wireless";
  /** Capacity of the link at a time, Mb/s; none if nobody knows it. */
  capacity(settings: Settings, time_s: number): number | undefined;
  /** Events in every run. */
  events?: Event[];
  /** The link whose rate the control sets; none if the rate is fixed. */
  rateOf?: string;
  rates?: number[];
  /** Start of the flows that there are at the beginning, microseconds. */
  start(flow: number): number;
  /** Bursts may be dropped in. */
  bursts?: boolean;
  files: Record<string, string>;
  /** Keys of the simulator for a control; none if it cannot change while it runs. */
  keys(key: Key, value: number): [string, string][] | undefined;
  network(settings: Settings, protocol: Protocol, steps: [number, number][]): string;
  flow?(flow: number): string;
  more?(protocol: Protocol): string;
}

/** A change on the way: when, which control, to what. `burst` is one more burst. */
export type Change = [time_us: number, key: Key | "burst", value: number];

/** Alpha and beta by router law; vite.config.js asks the module for them. */
declare const ROUTER_GAINS: Record<string, { alpha: number; beta: number }>;
/** The default gains of a protocol's router; none if it has no such gains. */
export const gainsOf = (protocol: Protocol) => (protocol.router === undefined ? undefined : ROUTER_GAINS[protocol.router]);
const us = (time: number) => `${time}us`;
const mbps = (rate: number) => `${rate}Mbps`;

/** A router law with those gains that are not its own. */
function router(settings: Settings, protocol: Protocol, more = ""): string {
  if (protocol.router === undefined) return "";
  const gains = gainsOf(protocol)
    ? (["alpha", "beta"] as const).filter((key) => settings[key] !== undefined).map((key) => `, ${key} = ${settings[key]}`)
    : [];
  const rest = gains.join("") + more;
  return `router = ${rest ? `{ law = "${protocol.router}"${rest} }` : `"${protocol.router}"`}\n`;
}
const queue = (protocol: Protocol) => (protocol.queue ? `queue = "${protocol.queue}"\n` : "");
const stepped = (rate: number, steps: [number, number][]) =>
  steps.length === 0
    ? `"${mbps(rate)}"`
    : `{ steps = [["0s", "${mbps(rate)}"], ${steps.map(([at, to]) => `["${us(at)}", "${mbps(to)}"]`).join(", ")}] }`;

function dumbbell(settings: Settings, protocol: Protocol, rate: string, more = ""): string {
  return (
    `[dumbbell]\nrate = ${rate}\nrtt = "${settings.rtt}ms"\nbuffer = "${settings.buffer}kB"\n` +
    `access_rate = "1Gbps"\n${more}${queue(protocol)}${router(settings, protocol)}`
  );
}

const onDumbbell = (key: Key, value: number): [string, string][] | undefined =>
  ({
    rate: [["dumbbell.rate", mbps(value)]],
    rtt: [["dumbbell.rtt", `${value}ms`]],
    buffer: [["dumbbell.buffer", `${value}kB`]],
    alpha: [["dumbbell.router.alpha", `${value}`]],
    beta: [["dumbbell.router.beta", `${value}`]],
    flows: [],
  })[key] as [string, string][];

const usual: Settings = { rate: 50, rtt: 40, buffer: 250, flows: 5 };
const oneBottleneck = {
  settings: usual,
  protocols: WIRED,
  compared: ["xcp", "reno+red"] as [string, string],
  link: "bottleneck",
  place: "bottleneck",
  table: "dumbbell" as Scenario["table"],
  capacity: (s: Settings) => s.rate as number | undefined,
  rateOf: "Bottleneck rate",
  files: {},
  keys: onDumbbell,
  network: (s: Settings, p: Protocol, steps: [number, number][]) => dumbbell(s, p, stepped(s.rate, steps)),
};

/** RTTs of the flows in the scenario of that name, as multiples of the least. */
const rttOf = (flow: number) => 2 ** (flow % 4);

export const SCENARIOS: Record<string, Scenario> = {
  five: {
    ...oneBottleneck,
    title: "Five joining flows",
    about: "Flows join one bottleneck, two seconds apart. How soon is sharing fair, and how long is the queue?",
    start: (flow) => flow * 2_000_000,
  },
  burst: {
    ...oneBottleneck,
    title: "A burst",
    about: "Thirty transfers of 60 kB begin within 10 ms, while long flows use the link.",
    compared: ["xcp", "cubic"],
    bursts: true,
    events: [{ at_us: BURST_US, mark: "burst", text: "a burst of thirty transfers began" }],
    start: () => 0,
    more: (protocol) =>
      Array.from(
        { length: BURSTS },
        (_, i) =>
          `[[flows]]\nname = "burst ${i + 1}"\nlaw = "${protocol.law}"\ncount = 30\nsize = "60kB"\n` +
          `start = "${i === 0 ? us(BURST_US) : PARKED}"\nspread = "10ms"\n`,
      ).join("\n"),
  },
  rtts: {
    ...oneBottleneck,
    title: "RTT unfairness",
    about: "Flows with 1, 2, 4 and 8 times the RTT share one bottleneck. How much does each flow get?",
    settings: { ...usual, rtt: 30, flows: 4, buffer: 500 },
    start: () => 0,
    flow: (flow) => `rtt = "@${rttOf(flow)}"\n`,
    network: (s, p, steps) => dumbbell(s, p, stepped(s.rate, steps), 'delay = "4ms"\n'),
    keys: (key, value) =>
      key === "rtt"
        ? Array.from({ length: SLOTS }, (_, i) => [`flows.${i}.rtt`, `${value * rttOf(i)}ms`])
        : onDumbbell(key, value),
  },
  parking: {
    ...oneBottleneck,
    title: "Parking lot",
    about: "Two long flows cross three links in a row, and one more flow crosses each link. The middle link is the slowest.",
    settings: { ...usual, rate: 30, rtt: 60, flows: 2 },
    link: "link2",
    place: "middle link",
    table: "parking-lot",
    events: [{ at_us: 1_000_000, mark: "cross", text: "one more flow joined on each link" }],
    rateOf: "Middle link's rate",
    start: () => 0,
    network: (s, p) =>
      `[parking_lot]\nrates = ["50Mbps", "${mbps(s.rate)}", "60Mbps"]\ndelay = "${delay(s.rtt / 6)}"\nbuffer = "${s.buffer}kB"\n` +
      `access_rate = "1Gbps"\n${queue(p)}${router(s, p)}`,
    keys: (key, value) =>
      ({
        rate: [["parking_lot.rates.1", mbps(value)]],
        rtt: [["parking_lot.delay", delay(value / 6)]],
        buffer: [["parking_lot.buffer", `${value}kB`]],
        alpha: [["parking_lot.router.alpha", `${value}`]],
        beta: [["parking_lot.router.beta", `${value}`]],
        flows: [],
      })[key] as [string, string][],
    more: (protocol) => `[[flows]]\nname = "cross"\nlaw = "${protocol.law}"\neach_hop = true\nstart = "1s"\n`,
  },
  cellular: {
    ...oneBottleneck,
    title: "Cellular trace",
    about: "Two downloads share a cellular link whose rate varies all the time. The router knows its mean over 100 ms.",
    settings: { ...usual, rtt: 60, buffer: 500, flows: 2 },
    compared: ["xcp", "cubic"],
    rateOf: undefined,
    capacity: (_, time_s) => traceRate(time_s),
    files: { "examples/data/cellular.down": cellular },
    start: () => 0,
    network: (s, p) =>
      dumbbell(s, p, '{ trace = "examples/data/cellular.down", capacity_window = "100ms" }', 'reverse_rate = "10Mbps"\n').replace(
        "[dumbbell]",
        'packet = "1500B" # what one line of a trace carries\n\n[dumbbell]',
      ),
  },
  wifi: {
    title: "Wi-Fi cell",
    about: "An 802.11g cell with six stations. Stations 3 and 6 send, the others receive. The capacity of the air is unknown.",
    settings: { rate: 54, rtt: 20, buffer: 400, flows: 6 },
    protocols: WIRELESS,
    compared: ["xcp-b", "cubic"],
    link: "cell.ap",
    place: "access point",
    table: "wireless",
    capacity: () => undefined,
    rateOf: "Station 1's rate",
    rates: [6, 9, 12, 18, 24, 36, 48, 54],
    files: {},
    start: () => 0,
    flow: (flow) => {
      const [from, to] = flow % 3 === 2 ? [`w${(flow % 6) + 1}`, "internet"] : ["internet", `w${(flow % 6) + 1}`];
      return `from = "${from}"\nto = "${to}"\n`;
    },
    network: (s, p) =>
      `[graph]\nlinks = [{ name = "wire", from = "internet", to = "ap", rate = "500Mbps", delay = "${delay(s.rtt / 2)}" }]\n\n` +
      `[[wireless]]\nname = "cell"\naccess_point = "ap"\nmac = "802.11g"\nbuffer = "${s.buffer}kB"\n${queue(p)}` +
      router(s, p, ', kappa = "6pkt", q_max = "100kB"') +
      `stations = [\n${STATION_RATES.map((rate, i) => `    { name = "w${i + 1}", rate = "${mbps(i === 0 ? s.rate : rate)}" },\n`).join("")}]\n`,
    keys: (key, value) =>
      ({
        rate: [["wireless.cell.stations.w1.rate", mbps(value)]],
        rtt: [["graph.links.wire.delay", delay(value / 2)]],
        buffer: undefined,
        alpha: [["wireless.cell.router.alpha", `${value}`]],
        beta: [["wireless.cell.router.beta", `${value}`]],
        flows: [],
      })[key] as [string, string][] | undefined,
  },
};

/** Opportunities to send 1500 bytes in each 50 ms of the trace, which repeats. */
const OPPORTUNITIES: number[] = [];
for (const at_ms of cellular.trim().split("\n").map(Number)) {
  const at = Math.floor((at_ms - 1) / 50);
  OPPORTUNITIES[at] = (OPPORTUNITIES[at] ?? 0) + 1;
}
/** Mean rate of the cellular link in the 50 ms before a time, Mb/s. */
const traceRate = (time_s: number) => ((OPPORTUNITIES[Math.round(time_s * 20 - 1) % OPPORTUNITIES.length] ?? 0) * 1500 * 8) / 50_000;

function delay(ms: number): string {
  return `${Math.round(ms * 1000)}us`;
}

/** When each flow starts and stops, by what was changed on the way. */
export class Slots {
  starts: (number | undefined)[] = Array(SLOTS).fill(undefined);
  stops: (number | undefined)[] = Array(SLOTS).fill(undefined);
  constructor(scenario: Scenario, flows: number) {
    for (let flow = 0; flow < flows; flow += 1) this.starts[flow] = scenario.start(flow);
  }
  /** True if a flow sends at a time, or sent in the second before it. */
  has(slot: number, time_us: number): boolean {
    const [start, stop] = [this.starts[slot], this.stops[slot]];
    return start !== undefined && time_us > start && (stop === undefined || time_us <= stop + 1e6);
  }
  /** Flows that have not stopped. */
  live(): number[] {
    return this.starts.flatMap((start, flow) => (start !== undefined && this.stops[flow] === undefined ? [flow] : []));
  }
  /** Flows that another one could still be. */
  free(): number {
    return this.starts.filter((start) => start === undefined).length;
  }
  /** The keys that make so many flows from `at` on; what has stopped does not begin again. */
  become(flows: number, at: number): [string, string][] {
    const sets: [string, string][] = [];
    const live = this.live();
    for (let more = flows - live.length; more > 0; more -= 1) {
      const flow = this.starts.findIndex((start) => start === undefined);
      if (flow < 0) break;
      this.starts[flow] = at + 1;
      sets.push([`flows.${flow}.start`, us(at + 1)]);
    }
    for (const flow of live.slice(flows)) {
      if ((this.starts[flow] ?? 0) > at) {
        this.starts[flow] = undefined;
        sets.push([`flows.${flow}.start`, PARKED]);
      } else {
        this.stops[flow] = at + 1;
        sets.push([`flows.${flow}.stop`, us(at + 1)]);
      }
    }
    return sets;
  }
}

/** The keys that drop in burst number `burst`, from 1 on, which was parked. */
export function burst(number: number, at: number): [string, string][] {
  return number < BURSTS ? [[`flows.burst ${number + 1}.start`, us(at + 1)]] : [];
}
export const MOST_BURSTS = BURSTS - 1;

/** The scenario as it begins. */
export function toml(id: string, settings: Settings, protocol: Protocol): string {
  return text(id, settings, protocol, new Slots(SCENARIOS[id], settings.flows), [], true);
}

/** The scenario as it is now, to be taken away: rates as steps, flows as they came and went, the rest by its last value. */
export function exported(id: string, begun: Settings, protocol: Protocol, slots: Slots, changes: Change[]): string {
  const scenario = SCENARIOS[id];
  const last = { ...begun };
  const notes: string[] = [];
  const steps: [number, number][] = [];
  for (const [at, key, value] of changes) {
    if (key === "flows" || key === "burst") continue;
    if (key === "rate" && scenario.keys("rate", value)?.[0][0] === "dumbbell.rate") {
      steps.push([at, value]);
      continue;
    }
    notes.push(`# ${key} was ${last[key] ?? "the default"} until ${at / 1e6} s\n`);
    last[key] = value;
  }
  let body = text(id, last, protocol, slots, steps, false);
  changes
    .filter(([, key]) => key === "burst")
    .forEach(([at], number) => {
      body = body.replace(new RegExp(`(name = "burst ${number + 2}"[^]*?start = )"${PARKED}"`), `$1"${us(at + 1)}"`);
    });
  // Flows that have not arrived are left out.
  const groups = body.split(/^(?=\[)/m).filter((part) => !part.includes(`start = "${PARKED}"`));
  return notes.join("") + groups.join("");
}

function text(
  id: string,
  settings: Settings,
  protocol: Protocol,
  slots: Slots,
  steps: [number, number][],
  parked: boolean,
): string {
  const scenario = SCENARIOS[id];
  const flows = slots.starts.flatMap((start, flow) => {
    if (start === undefined && !parked) return [];
    const stop = slots.stops[flow];
    const own = (scenario.flow?.(flow) ?? "").replace(/"@(\d+)"/, (_, times) => `"${settings.rtt * Number(times)}ms"`);
    return [
      `[[flows]]\nname = "flow ${flow + 1}"\nlaw = "${protocol.law}"\n${own}` +
        `start = "${start === undefined ? PARKED : us(start)}"\n${stop === undefined ? "" : `stop = "${us(stop)}"\n`}`,
    ];
  });
  return [
    `name = "${scenario.title}, ${protocol.label}"\nduration = "${DURATION_US / 1e6}s"\n\n${scenario.network(settings, protocol, steps)}`,
    ...flows,
    ...(scenario.more ? [scenario.more(protocol)] : []),
    `[probes]\nevery = "50ms"\nflows = true\n`,
  ].join("\n");
}
