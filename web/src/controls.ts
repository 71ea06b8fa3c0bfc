// SPDX-License-Identifier: Apache-2.0 OR MIT
// The controls: their limits, how their values are written, and where they are explained.

import { gainsOf, type Key, PROTOCOLS, type Scenario, SLOTS } from "./scenarios";

export const SPEEDS = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4, 8];

export interface Control {
  label: string;
  least: number;
  most: number;
  step: number;
  text(value: number): string;
  /** One or two sentences on what it does. */
  help: string;
}
export const CONTROLS: Record<Key, Control> = {
  rate: {
    label: "Rate",
    least: 1,
    most: 100,
    step: 1,
    text: (v) => `${v} Mb/s`,
    help: "Capacity of the link that the charts show. Cut it to see how fast each protocol slows down.",
  },
  rtt: {
    label: "Round-trip time",
    least: 20,
    most: 300,
    step: 10,
    text: (v) => `${v} ms`,
    help: "Time from a packet's departure to its ack while no queue delays it. All feedback is at least this old.",
  },
  buffer: {
    label: "Buffer",
    least: 10,
    most: 1000,
    step: 10,
    text: (v) => `${v} kB`,
    help: "Room for packets that wait for the link. A packet that finds it full is lost.",
  },
  alpha: {
    label: "Router's α",
    least: 0.05,
    most: 1,
    step: 0.05,
    text: (v) => v.toFixed(2),
    help: "Share of the spare capacity that the router gives out in one control interval. A large value is fast and may oscillate.",
  },
  beta: {
    label: "Router's β",
    least: 0.05,
    most: 1,
    step: 0.002,
    text: (v) => v.toFixed(3),
    help: "Share of the standing queue that the router takes back in one control interval. A large value drains the queue sooner.",
  },
  flows: {
    label: "Number of flows",
    least: 1,
    most: SLOTS,
    step: 1,
    text: (v) => `${v}`,
    help: "Long transfers that share the link. A flow that has left does not come back.",
  },
};
export const KEYS = Object.keys(CONTROLS) as Key[];

export const HELP: Record<string, string> = {
  ...Object.fromEntries(KEYS.map((key) => [key, CONTROLS[key].help])),
  speed: "Simulated seconds that pass in one second. A slow run shows single packets; a fast one shows minutes.",
  scenario: "The network and the flows at the start. Both runs have the same network.",
  protocol0: "The congestion control protocol of the first run: the senders' law, and the router's law or queue.",
  protocol1: "The congestion control protocol of the second run: the senders' law, and the router's law or queue.",
};

/** The pages on models; vite.config.js lists them. */
declare const MODELS: string[];
const model = (names: (string | undefined)[]) => names.find((name) => name !== undefined && MODELS.includes(name)) ?? "tcp";

/** Pages of the documentation that explain a control, with their titles. */
export function pages(key: string, scenario: Scenario, names: [string, string]): [title: string, page: string][] {
  const laws = names.map((name) => PROTOCOLS[name]);
  switch (key) {
    case "alpha":
    case "beta": {
      const routers = new Set(laws.flatMap((protocol) => (gainsOf(protocol) ? [protocol.router!] : [])));
      return [...routers].map((router) => [`Parameters of the router law ${router}`, `models/${router}.html#parameters`]);
    }
    case "protocol0":
    case "protocol1": {
      const { label, law, router, queue } = laws[Number(key.at(-1))];
      const of = model([router, law]);
      const more: [string, string][] = queue && MODELS.includes(queue) ? [[`Model: ${queue}`, `models/${queue}.html#parameters`]] : [];
      return [[`Model of ${label}`, `models/${of}.html#parameters`], ...more];
    }
    case "flows":
      return [["Keys of flows", "reference/scenario.html#flows"]];
    case "scenario":
      return [["Scenarios of the lab", "browser.html#what-is-in-it"]];
    case "speed":
      return [["The lab in a browser", "browser.html#what-changes-while-it-runs"]];
    default:
      return [[`Keys of ${scenario.table.replace("-", "_")}`, `reference/scenario.html#${scenario.table}`]];
  }
}

/** Default of alpha or beta on each side that has it. */
export function defaults(key: "alpha" | "beta", names: [string, string]): [label: string, value: number][] {
  return [...new Set(names)].flatMap((name) => {
    const gains = gainsOf(PROTOCOLS[name]);
    return gains ? [[PROTOCOLS[name].label, gains[key]] as [string, number]] : [];
  });
}

/** The value of alpha or beta as a number, with the default beside it. */
export function gainText(key: "alpha" | "beta", value: number | undefined, names: [string, string]): string {
  const own = defaults(key, names).map(([label, gain]): [string, string] => [label, CONTROLS[key].text(gain)]);
  if (own.length === 0) return "not used";
  const same = own.every(([, text]) => text === own[0][1]);
  const written = same ? own[0][1] : own.map(([label, text]) => `${label} ${text}`).join(", ");
  const text = value === undefined ? undefined : CONTROLS[key].text(value);
  if (text === undefined || (same && text === own[0][1])) return `${written} (default)`;
  return `${text} (default ${written})`;
}

/** True if a control may have this value. */
export function valid(scenario: Scenario, key: Key, value: number): boolean {
  if (key === "rate" && scenario.rates) return scenario.rates.includes(value);
  return value >= CONTROLS[key].least && value <= CONTROLS[key].most && (key !== "flows" || Number.isInteger(value));
}

/** True if a control has an effect on this comparison. */
export function usable(scenario: Scenario, names: [string, string], key: Key): boolean {
  if (key === "rate") return scenario.rateOf !== undefined;
  if (key === "alpha" || key === "beta") return names.some((name) => gainsOf(PROTOCOLS[name]));
  return true;
}

