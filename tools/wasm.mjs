// SPDX-License-Identifier: Apache-2.0 OR MIT
// Runs golden scenarios in the simulator's WebAssembly module, in steps and looked at on the way, and compares their digests with
// those known: node tools/wasm.mjs MODULE.wasm [--lab MOST] [NAME...], all of them, and a run
// that is changed on the way, without names. With --lab the module is the browser lab's: it must be of at most MOST bytes by gzip,
// reads JSON, and refuses by name what the lab does not offer; of what the lab offers it must run all.

import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";

const golden = new URL("../crates/flowstamp-sim/tests/golden/", import.meta.url);
const text = (name) => readFileSync(new URL(name, golden), "utf8");

const [path, ...rest] = process.argv.slice(2);
const most = rest[0] === "--lab" ? Number(rest[1]) : undefined;
const given = most === undefined ? rest : rest.slice(2);
if (path === undefined || Number.isNaN(most)) {
  console.error("usage: node tools/wasm.mjs MODULE.wasm [--lab MOST] [NAME...]");
  process.exit(2);
}
// What the lab offers, which its module may not refuse.
const LAB = [
  ...["xcp", "xcp-b", "xcp-parking-lot", "xcp-steps", "xcp-trace", "rcp", "vcp", "pcp", "reno", "reno-red-drops", "sack", "sack-codel"],
  ...["sack-red", "cubic", "bbr", "fq-codel", "fq-codel-cell", "graph", "wireless", "changed"],
];
const smol = "../web/node_modules/smol-toml/dist/index.js";
const parse = most === undefined ? undefined : (await import(smol)).parse;
const read = (toml) => (parse === undefined ? toml : JSON.stringify(parse(toml)));
const known = new Map();
for (const line of text("digests.txt").trim().split("\n")) {
  const [name, ...digests] = line.split(" ");
  known.set(name, digests.join(" "));
}
const names = given.length > 0 ? given : [...known.keys(), "changed"];
// A scenario takes of these what it names.
const files = {};
for (const name of readdirSync(golden)) {
  if (!name.endsWith(".toml") && !["digests.txt", "table.txt", "laws.txt"].includes(name)) files[name] = text(name);
}

const module = await WebAssembly.compile(readFileSync(path));

// In an instance of its own: what a panic leaves behind is of no use to the next.
async function start(request) {
  const { exports } = await WebAssembly.instantiate(module, {});
  const ask = (request) => {
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    const at = exports.flowstamp_request(bytes.length);
    // Views are made where they are used: one is lost when the memory grows, which any call may make it do.
    new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
    const reply = exports.flowstamp_run();
    const length = exports.flowstamp_reply_length();
    const answer = JSON.parse(new TextDecoder().decode(new Uint8Array(exports.memory.buffer, reply, length)));
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer;
  };
  return [ask, ask({ start: request })];
}

const MICROSECONDS = { s: 1e6, ms: 1e3, us: 1 };

async function golden_run(name) {
  const scenario = text(`${name}.toml`);
  const [ask, { links }] = await start({ name, scenario: read(scenario), files });
  const [, duration, unit] = scenario.match(/^duration = "([\d.]+)(s|ms|us)"/m);
  for (const part of [0.1, 0.31, 0.5, 0.999]) {
    ask({ step: { until: `${Math.round(part * duration * MICROSECONDS[unit])}us` } });
    for (const link of links) ask({ look: { since: "0s", link } });
  }
  ask({ step: { until: duration + unit } });
  return [ask({ digest: {} }).digest, known.get(name)];
}

async function changed_run() {
  const { scenario, changes, digest } = JSON.parse(text("../changed.json"));
  const [ask] = await start({ name: "changed", scenario: read(scenario.join("\n")) });
  for (const [until, key, value] of changes) {
    ask({ step: { until } });
    ask({ set: { key, value } });
  }
  ask({ step: { until: "8s" } });
  return [ask({ digest: {} }).digest, digest];
}

async function differs(name) {
  try {
    const [found, wanted] = await (name === "changed" ? changed_run() : golden_run(name));
    if (found === wanted) return undefined;
    return `digests of summary, flows, series, capture: ${found}, known: ${wanted}`;
  } catch (error) {
    if (most !== undefined && !LAB.includes(name) && /this build (has|reads) no /.test(error.message)) throw error;
    return `${name}: ${error.message}`;
  }
}

let [failed, left] = [0, 0];
for (const name of names) {
  let difference;
  try {
    difference = await differs(name);
  } catch (error) {
    console.log(`test ${name} ... not in this module\n  ${error.message}`);
    left += 1;
    continue;
  }
  console.log(`test ${name} ... ${difference === undefined ? "ok" : `FAILED\n  ${difference}`}`);
  if (difference !== undefined) failed += 1;
}
if (most !== undefined) {
  const size = gzipSync(readFileSync(path), { level: 9 }).length;
  console.log(`test size ... ${size <= most ? "ok" : "FAILED"}: ${size} bytes by gzip, at most ${most}`);
  if (size > most) failed += 1;
}
const word = failed === 0 ? "ok" : "FAILED";
const passed = names.length - left + (most === undefined ? 0 : 1) - failed;
console.log(`test result: ${word}. ${passed} passed; ${failed} failed; ${left} not in this module; golden scenarios on wasm32-unknown-unknown under node`);
process.exit(failed === 0 ? 0 : 1);
