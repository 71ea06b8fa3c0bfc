// SPDX-License-Identifier: Apache-2.0 OR MIT
// One column of the page: a run of one protocol, what it has given in the last seconds, and its charts.

import { Engine, type Packet } from "./engine";
import { Chart, type Extent, GREY, WINDOW_S, Wire } from "./plots";
import { type Protocol, type Scenario, SLOTS, toml } from "./scenarios";

const EVERY_S = 0.05;
const KEPT = Math.round(WINDOW_S / EVERY_S);
/** Throughput is shown as a mean over so many samples: 200 ms. */
const SMOOTH = 4;
const SECOND = Math.round(1 / EVERY_S);

export interface Line {
  name: string;
  /** Its colour and dash. */
  line: number;
  groups: string[];
  slot?: number;
}

/** The lines of a scenario: a flow each, and what else there is. */
export function linesOf(groups: string[]): Line[] {
  const flows = groups
    .slice(0, SLOTS)
    .map((name, slot): Line => ({ name, line: slot, groups: [name], slot }));
  const others = groups.slice(SLOTS);
  const bursts = others.filter((name) => name.startsWith("burst"));
  const cross = others.filter((name) => name.startsWith("cross"));
  return [
    ...flows,
    // Beside long flows there is room among the colours.
    ...cross.map((name, at): Line => ({ name, line: SLOTS + 4 + at, groups: [name] })),
    ...(bursts.length > 0 ? [{ name: "bursts", line: GREY, groups: bursts }] : []),
  ];
}

export interface Numbers {
  throughput: number; // Mb/s
  used: number; // 0 to 1
  queue: number; // kB
  drops: number; // since the start
  jain: number | undefined;
  rtt: number | undefined; // ms
  flows: (number | undefined)[]; // Mb/s, by line
}

export class Run {
  lines: Line[] = [];
  packets: Packet[] = [];
  /** The last samples, whole. */
  private samples: number[][] = [];
  private drops = 0;
  private lineOfGroup: number[] = [];
  private charts: Chart[] = [];
  private wire: Wire | undefined;

  private constructor(
    readonly engine: Engine,
    readonly scenario: Scenario,
    readonly protocol: Protocol,
  ) {}

  static async start(id: string, scenario: Scenario, settings: Parameters<typeof toml>[1], protocol: Protocol): Promise<Run> {
    const engine = await Engine.start(protocol.label, toml(id, settings, protocol), scenario.files);
    const run = new Run(engine, scenario, protocol);
    run.lines = linesOf(engine.groups);
    run.lineOfGroup = engine.groups.map((name) => run.lines.find((line) => line.groups.includes(name))?.line ?? GREY);
    return run;
  }

  /** Puts what has happened since the last look aside. True if there are new samples. */
  look(now_us: number): boolean {
    const { samples, packets } = this.engine.look(now_us, this.scenario.link);
    this.packets = packets;
    const drops = this.column(`link/${this.scenario.link}/drops`);
    for (const sample of samples) this.drops += drops === undefined ? 0 : sample[drops];
    this.samples.push(...samples);
    if (this.samples.length > KEPT + SMOOTH + SECOND) this.samples.splice(0, this.samples.length - KEPT - SMOOTH);
    return samples.length > 0;
  }

  private column(key: string): number | undefined {
    return this.engine.columns.get(key);
  }

  private goodputs(line: Line): number[] {
    return line.groups.flatMap((group) => this.column(`group/${group}/goodput_bps`) ?? []);
  }

  /** Data of the three charts: throughput in Mb/s, queue in kB, windows in packets. */
  data(starts: (number | undefined)[], stops: (number | undefined)[]): (number | null)[][][] {
    const times = this.samples.map((sample) => sample[0]);
    const shown = (line: Line, time: number) => {
      if (line.slot === undefined) return true;
      const [start, stop] = [starts[line.slot], stops[line.slot]];
      return start !== undefined && time * 1e6 > start && (stop === undefined || time * 1e6 <= stop + 1e6);
    };
    const throughput = this.lines.map((line) => {
      const columns = this.goodputs(line);
      let sum = 0;
      const values = this.samples.map((sample) => columns.reduce((all, column) => all + sample[column], 0) / 1e6);
      return times.map((time, at) => {
        sum += values[at] - (at >= SMOOTH ? values[at - SMOOTH] : 0);
        return shown(line, time) ? Math.max(sum, 0) / Math.min(at + 1, SMOOTH) : null;
      });
    });
    const queue = this.column(`link/${this.scenario.link}/queue_bytes`) ?? 0;
    const windows = this.lines.map((line) => {
      const column = line.slot === undefined ? undefined : this.column(`flow/${line.groups[0]}.0/cwnd_packets`);
      return this.samples.map((sample, at) => (column !== undefined && shown(line, times[at]) ? sample[column] : null));
    });
    return [
      [times, ...throughput],
      [times, this.samples.map((sample) => sample[queue] / 1e3)],
      [times, ...windows],
    ];
  }

  numbers(live: number[]): Numbers {
    const last = this.samples.slice(-SECOND);
    const mean = (column: number | undefined) =>
      column === undefined || last.length === 0
        ? 0
        : last.reduce((sum, sample) => sum + sample[column], 0) / last.length;
    const flows = this.lines.map((line) =>
      line.slot !== undefined && !live.includes(line.slot)
        ? undefined
        : this.goodputs(line).reduce((sum, column) => sum + mean(column), 0) / 1e6,
    );
    const shares = live.map((slot) => flows[slot] ?? 0);
    const squares = shares.reduce((sum, share) => sum + share * share, 0);
    const rtts = live.map((slot) => mean(this.column(`flow/flow ${slot + 1}.0/rtt_s`)) * 1e3).filter((rtt) => rtt > 0);
    const total = shares.reduce((sum, share) => sum + share, 0);
    return {
      throughput: flows.reduce<number>((sum, flow) => sum + (flow ?? 0), 0),
      used: mean(this.column("cell/cell/busy") ?? this.column(`link/${this.scenario.link}/utilization`)),
      queue: mean(this.column(`link/${this.scenario.link}/mean_queue_bytes`)) / 1e3,
      drops: this.drops,
      jain: squares > 0 ? total ** 2 / (shares.length * squares) : undefined,
      rtt: rtts.length > 0 ? rtts.reduce((sum, rtt) => sum + rtt, 0) / rtts.length : undefined,
      flows,
    };
  }

  /** Fills a column of the page. */
  show(home: HTMLElement, extents: Extent[]): void {
    this.hide();
    const title = document.createElement("h3");
    title.textContent = this.protocol.label;
    const heading = (text: string) => Object.assign(document.createElement("h4"), { textContent: text });
    const canvas = Object.assign(document.createElement("canvas"), { className: "wire" });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Packets that wait for the link and are on their way, ${this.protocol.label}`);
    const homes = extents.map(() => Object.assign(document.createElement("div"), { className: "chart" }));
    home.replaceChildren(
      title,
      heading(`Packets before and on ${this.scenario.link}`),
      canvas,
      heading("Throughput of each flow, Mb/s of payload"),
      homes[0],
      heading("Queue, kB"),
      homes[1],
      heading("Window of each flow, packets"),
      homes[2],
    );
    this.wire = new Wire(canvas);
    const label = (what: string) => `${what}, ${this.protocol.label}`;
    const one = [{ name: "queue", line: GREY }];
    this.charts = [
      new Chart(homes[0], label("Throughput of each flow over time, Mb/s"), this.lines, extents[0]),
      new Chart(homes[1], label("Queue over time, kB"), one, extents[1]),
      new Chart(homes[2], label("Window of each flow over time, packets"), this.lines, extents[2]),
    ];
  }

  hide(): void {
    for (const chart of this.charts) chart.remove();
    this.charts = [];
  }

  drawWire(): void {
    this.wire?.draw(this.packets, (group) => this.lineOfGroup[group]);
  }

  drawChart(which: number, data: (number | null)[][], now_s: number): void {
    this.charts[which]?.draw(data, now_s);
  }
}
