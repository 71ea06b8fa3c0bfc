// SPDX-License-Identifier: Apache-2.0 OR MIT
// One column of the page: a run of one protocol, what it has given in the last seconds, and its charts.

import { Engine, type Packet } from "./engine";
import type { Event } from "./events";
import { Chart, type Extent, GREY, LIMIT, WINDOW_S, Wire } from "./plots";
import { type Protocol, type Scenario, type Settings, SLOTS, type Slots, toml } from "./scenarios";

const EVERY_S = 0.05;
const KEPT = Math.round(WINDOW_S / EVERY_S);
/** Rates are shown as means over so many samples: 200 ms. */
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

/** One moment in the charts: the values of each chart's lines, and the greatest one of each that its axis must reach. */
export interface Row {
  time_s: number;
  values: (number | null)[][];
  most: number[];
}

const CHARTS: { title: string; unknown?: string; height: number }[] = [
  { title: "Traffic on the link and its capacity, Mb/s", unknown: "Traffic of all flows (the capacity is unknown), Mb/s", height: 70 },
  { title: "Throughput of each flow, Mb/s of payload", height: 124 },
  { title: "Queue and buffer, kB", height: 90 },
  { title: "Window of each flow, packets", height: 84 },
];
export const newExtents = (extent: () => Extent) => CHARTS.map(extent);

export interface Numbers {
  throughput: number; // Mb/s
  used: number; // 0 to 1
  queue: number; // kB
  peak: number; // kB, of the queue in the charts
  drops: number; // since the start
  jain: number | undefined;
  rtt: number | undefined; // ms
  flows: (number | undefined)[]; // Mb/s, by line
}

export class Run {
  lines: Line[] = [];
  packets: Packet[] = [];
  rows: Row[] = [];
  charts: Chart[] = [];
  /** The last samples, each followed by the link's traffic and capacity in Mb/s. */
  private samples: number[][] = [];
  private drops = 0;
  private lineOfGroup: number[] = [];
  private wire: Wire | undefined;

  private constructor(
    readonly engine: Engine,
    readonly scenario: Scenario,
    readonly protocol: Protocol,
  ) {}

  static async start(id: string, scenario: Scenario, settings: Settings, protocol: Protocol): Promise<Run> {
    const engine = await Engine.start(protocol.label, toml(id, settings, protocol), scenario.files);
    const run = new Run(engine, scenario, protocol);
    run.lines = linesOf(engine.groups);
    run.lineOfGroup = engine.groups.map((name) => run.lines.find((line) => line.groups.includes(name))?.line ?? GREY);
    return run;
  }

  /** Takes over what has happened since the last look. */
  look(now_us: number, settings: Settings, slots: Slots): void {
    const { samples, packets } = this.engine.look(now_us, this.scenario.link);
    this.packets = packets;
    const drops = this.column(`link/${this.scenario.link}/drops`);
    for (const sample of samples) {
      this.drops += drops === undefined ? 0 : sample[drops];
      sample.push(...this.traffic(sample, settings));
      this.samples.push(sample);
      this.rows.push(this.row(sample, settings, slots));
    }
    this.samples.splice(0, this.samples.length - SECOND);
    this.rows.splice(0, this.rows.length - KEPT);
  }

  private column(key: string): number | undefined {
    return this.engine.columns.get(key);
  }

  private goodputs(line: Line): number[] {
    return line.groups.flatMap((group) => this.column(`group/${group}/goodput_bps`) ?? []);
  }

  /** Traffic on the link and its capacity, Mb/s. In a cell, whose capacity is unknown, the traffic is the payload of all flows. */
  private traffic(sample: number[], settings: Settings): [number, number] {
    const capacity = this.scenario.capacity(settings, sample[0]);
    const used = this.column(`link/${this.scenario.link}/utilization`);
    if (capacity !== undefined && used !== undefined) return [sample[used] * capacity, capacity];
    const all = this.lines.flatMap((line) => this.goodputs(line)).reduce((sum, column) => sum + sample[column], 0);
    return [all / 1e6, Number.NaN];
  }

  private row(sample: number[], settings: Settings, slots: Slots): Row {
    const last = this.samples.slice(-SMOOTH);
    const mean = (column: number) => last.reduce((sum, one) => sum + one[column], 0) / last.length;
    const [time_s, capacity] = [sample[0], mean(sample.length - 1)];
    const shown = this.lines.map((line) => line.slot === undefined || slots.has(line.slot, time_s * 1e6));
    const flows = this.lines.map((line, at) =>
      shown[at] ? this.goodputs(line).reduce((sum, column) => sum + mean(column), 0) / 1e6 : null,
    );
    const queue = sample[this.column(`link/${this.scenario.link}/queue_bytes`) ?? 0] / 1e3;
    const windows = this.lines.map((line, at) => {
      const column = line.slot === undefined ? undefined : this.column(`flow/${line.groups[0]}.0/cwnd_packets`);
      return column !== undefined && shown[at] ? sample[column] : null;
    });
    const traffic = [mean(sample.length - 2), Number.isNaN(capacity) ? null : capacity];
    const most = (values: (number | null)[]) => Math.max(0, ...values.map((value) => value ?? 0));
    return {
      time_s,
      values: [traffic, flows, [queue, settings.buffer], windows],
      most: [most(traffic), most(flows), queue, most(windows)],
    };
  }

  numbers(live: number[]): Numbers {
    const last = this.samples;
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
      peak: Math.max(0, ...this.rows.map((row) => row.most[2])),
      drops: this.drops,
      jain: squares > 0 ? total ** 2 / (shares.length * squares) : undefined,
      rtt: rtts.length > 0 ? rtts.reduce((sum, rtt) => sum + rtt, 0) / rtts.length : undefined,
      flows,
    };
  }

  /** Fills a column of the page. */
  show(home: HTMLElement, extents: Extent[]): void {
    const flows = this.lines.map(({ line }) => line);
    const lines = [[GREY, LIMIT], flows, [GREY, LIMIT], flows];
    const canvas = (name: string, label: string) => {
      const made = Object.assign(document.createElement("canvas"), { className: name });
      made.setAttribute("role", "img");
      made.setAttribute("aria-label", `${label}, ${this.protocol.label}. The table below has the numbers.`);
      return made;
    };
    const heading = (kind: "h3" | "h4", textContent: string) => Object.assign(document.createElement(kind), { textContent });
    const wire = canvas("wire", "Packets that wait for the link and are in flight on it");
    home.replaceChildren(heading("h3", this.protocol.label), heading("h4", `Packets at the ${this.scenario.place}`), wire);
    this.wire = new Wire(wire);
    const known = this.scenario.capacity(this.scenario.settings, 1) !== undefined;
    this.charts = CHARTS.map((chart, which) => {
      const { height } = chart;
      const title = known ? chart.title : (chart.unknown ?? chart.title);
      const home_of = canvas("chart", `${title}, over time`);
      home.append(heading("h4", title), home_of);
      const place = { first: which === 0, last: which === CHARTS.length - 1, height };
      return new Chart(home_of, which, lines[which], extents[which], place);
    });
  }

  draw(now_s: number, events: Event[]): void {
    this.wire?.draw(this.packets, (group) => this.lineOfGroup[group]);
    for (const chart of this.charts) chart.draw(this.rows, now_s, events);
  }
}
