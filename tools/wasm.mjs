// SPDX-License-Identifier: Apache-2.0 OR MIT
// Runs golden scenarios in the simulator's WebAssembly module and compares their digests with those known:
// node tools/wasm.mjs MODULE.wasm [NAME...], all of them without names.

import { readFileSync, readdirSync } from "node:fs";

const golden = new URL("../crates/flowstamp-sim/tests/golden/", import.meta.url);
const text = (name) => readFileSync(new URL(name, golden), "utf8");

const [path, ...given] = process.argv.slice(2);
if (path === undefined) {
  console.error("usage: node tools/wasm.mjs MODULE.wasm [NAME...]");
  process.exit(2);
}
const known = new Map();
for (const line of text("digests.txt").trim().split("\n")) {
  const [name, ...digests] = line.split(" ");
  known.set(name, digests.join(" "));
}
const names = given.length > 0 ? given : [...known.keys()];
// A scenario takes of these what it names.
const files = {};
for (const name of readdirSync(golden)) {
  if (!name.endsWith(".toml") && name !== "digests.txt") files[name] = text(name);
}

const module = await WebAssembly.compile(readFileSync(path));

// In an instance of its own: what a panic leaves behind is of no use to the next.
async function run(request) {
  const { exports } = await WebAssembly.instantiate(module, {});
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const at = exports.flowstamp_request(bytes.length);
  // Views are made where they are used: one is lost when the memory grows, which any call may make it do.
  new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
  const reply = exports.flowstamp_run();
  const length = exports.flowstamp_reply_length();
  return JSON.parse(new TextDecoder().decode(new Uint8Array(exports.memory.buffer, reply, length)));
}

async function differs(name) {
  try {
    const reply = await run({ name, scenario: text(`${name}.toml`), files });
    if (reply.digest === undefined) return reply.error;
    if (reply.digest === known.get(name)) return undefined;
    return `digests of summary, flows, series, capture: ${reply.digest}, known: ${known.get(name)}`;
  } catch (error) {
    return `${name}: ${error.message}`;
  }
}

let failed = 0;
for (const name of names) {
  const difference = await differs(name);
  console.log(`test ${name} ... ${difference === undefined ? "ok" : `FAILED\n  ${difference}`}`);
  if (difference !== undefined) failed += 1;
}
const word = failed === 0 ? "ok" : "FAILED";
const passed = names.length - failed;
console.log(`test result: ${word}. ${passed} passed; ${failed} failed; golden scenarios on wasm32-unknown-unknown under node`);
process.exit(failed === 0 ? 0 : 1);
