// SPDX-License-Identifier: Apache-2.0 OR MIT
// The part of the page's address that restores a run.

import { KEYS, SPEEDS, usable, valid } from "./controls";
import { type Change, DURATION_US, type Key, SCENARIOS, type Settings } from "./scenarios";

/** A run as it begins, and the changes that come on the way. */
export interface Setup {
  id: string;
  names: [string, string];
  settings: Settings;
  speed: number;
  changes: Change[];
}

export function setup(id: string): Setup {
  const { settings, compared } = SCENARIOS[id];
  return { id, names: [...compared], settings: { ...settings }, speed: 1, changes: [] };
}

export function write({ id, names, settings, speed, changes }: Setup): string {
  const parts = new URLSearchParams({ scenario: id, left: names[0], right: names[1], speed: `${speed}` });
  for (const key of KEYS) if (settings[key] !== undefined) parts.set(key, `${settings[key]}`);
  if (changes.length > 0) parts.set("changes", changes.map((change) => change.join(":")).join(","));
  return `#${parts}`;
}

/** Reads such a part; whatever makes no sense keeps its default. */
export function read(hash: string): Setup {
  const parts = new URLSearchParams(hash.slice(1));
  const chosen = parts.get("scenario");
  const made = setup(chosen !== null && Object.hasOwn(SCENARIOS, chosen) ? chosen : "five");
  const scenario = SCENARIOS[made.id];
  (["left", "right"] as const).forEach((side, at) => {
    const name = parts.get(side);
    if (name !== null && scenario.protocols.includes(name)) made.names[at] = name;
  });
  for (const key of KEYS) {
    const value = Number(parts.get(key) ?? Number.NaN);
    if (valid(scenario, key, value)) made.settings[key] = value;
  }
  const speed = Number(parts.get("speed") ?? Number.NaN);
  if (SPEEDS.includes(speed)) made.speed = speed;
  for (const text of (parts.get("changes") ?? "").split(",")) {
    const [at, key, number] = text.split(":");
    const [time, value] = [Number(at), Number(number)];
    if (!Number.isInteger(time) || time < 0 || time >= DURATION_US - 1000 || !Number.isFinite(value)) continue;
    const known = KEYS.includes(key as Key) && usable(scenario, made.names, key as Key) && valid(scenario, key as Key, value);
    if (key === "burst" ? scenario.bursts : known) made.changes.push([time, key as Key | "burst", value]);
  }
  made.changes.sort(([a], [b]) => a - b);
  return made;
}
