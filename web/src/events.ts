// SPDX-License-Identifier: Apache-2.0 OR MIT
// Events of a run: flows that joined and left, and changes by the user.

import type { Change, Key, Scenario, Settings, Slots } from "./scenarios";

export interface Event {
  at_us: number;
  /** A few characters, for the charts. */
  mark: string;
  /** A sentence without its full stop, for the list. */
  text: string;
}

const UNITS: Record<Exclude<Key, "flows">, [name: string, mark: string, unit: string]> = {
  rate: ["the rate", "", " Mb/s"],
  rtt: ["the round-trip time", "RTT ", " ms"],
  buffer: ["the buffer", "buffer ", " kB"],
  alpha: ["α", "α ", ""],
  beta: ["β", "β ", ""],
};

function changed(key: Exclude<Key, "flows">, from: number | undefined, to: number | undefined): Omit<Event, "at_us"> {
  const [name, mark, unit] = UNITS[key];
  const verb = from === undefined || to === undefined ? "set" : to < from ? "cut" : "raised";
  const value = to === undefined ? "default" : `${to}${unit}`;
  return { mark: mark + value, text: `${name} was ${verb} to ${value}` };
}

/** One event for all flows that came or went at the same time, unless it is the beginning. */
function together(times: (number | undefined)[], sign: string, verb: string): Event[] {
  return [...new Set(times)].flatMap((at_us) => {
    if (!at_us) return [];
    const flows = times.flatMap((time, flow) => (time === at_us ? [flow + 1] : []));
    const row = flows.at(-1)! - flows[0] === flows.length - 1;
    const which = flows.length === 1 ? `flow ${flows[0]}` : `flows ${row ? `${flows[0]} to ${flows.at(-1)}` : flows.join(", ")}`;
    return [{ at_us, mark: flows.length === 1 ? `${sign}${flows[0]}` : `${sign}${flows.length} flows`, text: `${which} ${verb}` }];
  });
}

/** Events until `now_us`, in order. The initial state is not an event. */
export function events(scenario: Scenario, begun: Settings, slots: Slots, changes: Change[], now_us: number): Event[] {
  const found: Event[] = [...(scenario.events ?? [])];
  found.push(...together(slots.starts, "+", "joined"), ...together(slots.stops, "−", "left"));
  const last = { ...begun };
  for (const [at_us, key, value] of changes) {
    if (key === "flows") continue;
    if (key === "burst") {
      found.push({ at_us, mark: "burst", text: "a burst of thirty transfers began" });
    } else {
      found.push({ at_us, ...changed(key, last[key], value) });
      last[key] = value;
    }
  }
  return found.filter(({ at_us }) => at_us <= now_us).sort((a, b) => a.at_us - b.at_us);
}
