// SPDX-License-Identifier: Apache-2.0 OR MIT
// One run of the simulator: a WebAssembly module that imports nothing and speaks JSON (crates/flowstamp-wasm).

import { parse } from "smol-toml";
import wasmUrl from "../build/flowstamp.wasm?url";

/** A packet on a link: number of its group, 1 for data, thousandths of the way or -1 before it. */
export type Packet = [group: number, data: number, part: number];

interface Exports {
  memory: WebAssembly.Memory;
  flowstamp_request(length: number): number;
  flowstamp_run(): number;
  flowstamp_reply_length(): number;
}

let compiled: Promise<WebAssembly.Module> | undefined;

/** The module, compiled once. It is a data: address in the page itself, which may be opened without a server. */
function module(): Promise<WebAssembly.Module> {
  compiled ??= fetch(wasmUrl)
    .then((reply) => reply.arrayBuffer())
    .then((bytes) => WebAssembly.compile(bytes));
  return compiled;
}

/** The simulator's error message. */
export class Refused extends Error {}

export class Engine {
  groups: string[] = [];
  links: string[] = [];
  /** Column of each series in a sample, by `kind/name/metric`; column 0 is the time. */
  columns = new Map<string, number>();
  private looked = "0us";

  private constructor(private readonly exports: Exports) {}

  /** Lays out a scenario. Each run has a module of its own, whose memory goes with it. */
  static async start(name: string, scenario: string, files: Record<string, string>): Promise<Engine> {
    const instance = await WebAssembly.instantiate(await module(), {});
    const engine = new Engine(instance.exports as unknown as Exports);
    // The module reads JSON: what would read TOML is a tenth of it.
    const started = engine.ask({ start: { name, scenario: JSON.stringify(parse(scenario)), files } });
    engine.groups = started.groups;
    engine.links = started.links;
    return engine;
  }

  private ask(request: object): any {
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    const at = this.exports.flowstamp_request(bytes.length);
    // Views are made where they are used: one is lost when the memory grows, which any call may make it do.
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
    const reply = this.exports.flowstamp_run();
    const length = this.exports.flowstamp_reply_length();
    const text = new TextDecoder().decode(new Uint8Array(this.exports.memory.buffer, reply, length));
    const answer = JSON.parse(text);
    if (answer.error !== undefined) throw new Refused(answer.error);
    return answer;
  }

  /** Runs on to this many microseconds. */
  step(until_us: number): void {
    this.ask({ step: { until: `${until_us}us` } });
  }

  /** Sets a value from now on. */
  set(key: string, value: string): void {
    this.ask({ set: { key, value } });
  }

  /** The samples since the last look, and the packets that are on a link now. */
  look(now_us: number, link: string): { samples: number[][]; packets: Packet[] } {
    const seen = this.ask({ look: { since: this.looked, link } });
    for (const [at, [kind, name, metric]] of (seen.series ?? []).entries()) {
      this.columns.set(`${kind}/${name}/${metric}`, at + 1);
    }
    // Series have names from the first sample on.
    if (this.columns.size > 0) this.looked = `${now_us}us`;
    return seen;
  }

  digest(): string {
    return this.ask({ digest: {} }).digest;
  }
}
