// SPDX-License-Identifier: Apache-2.0 OR MIT
// The numbers of the last second: as a table, and as sentences for screen readers.

import type { Run } from "./run";

const fixed = (value: number | undefined, digits: number) => (value === undefined ? "–" : value.toFixed(digits));

function row(kind: "td" | "th", name: string, values: string[]): HTMLTableRowElement {
  const made = document.createElement("tr");
  const head = Object.assign(document.createElement("th"), { textContent: name, scope: kind === "th" ? "col" : "row" });
  const cells = values.map((textContent) => {
    const cell = Object.assign(document.createElement(kind), { textContent });
    if (kind === "th") cell.setAttribute("scope", "col");
    return cell;
  });
  made.append(head, ...cells);
  return made;
}

/** Fills the table; `live` are the slots of the flows that send. */
export function showTable(home: HTMLElement, runs: Run[], live: number[]): void {
  const all = runs.map((run) => run.numbers(live));
  const rows: [string, string[]][] = [
    ["Throughput of all flows", all.map((n) => `${fixed(n.throughput, 2)} Mb/s`)],
    [runs[0]?.scenario.link === "cell.ap" ? "Air in use" : "Link in use", all.map((n) => `${fixed(100 * n.used, 1)}%`)],
    ["Mean queue", all.map((n) => `${fixed(n.queue, 1)} kB`)],
    ["Longest queue in the chart", all.map((n) => `${fixed(n.peak, 1)} kB`)],
    ["Mean RTT of the flows", all.map((n) => (n.rtt === undefined ? "–" : `${fixed(n.rtt, 1)} ms`))],
    ["Fairness of the flows (Jain's index)", all.map((n) => fixed(n.jain, 3))],
    ["Packets lost since the start", all.map((n) => `${n.drops}`)],
  ];
  runs[0]?.lines.forEach((line, at) => {
    if (line.slot === undefined || live.includes(line.slot)) {
      rows.push([`Throughput, ${line.name}`, all.map((n) => `${fixed(n.flows[at], 2)} Mb/s`)]);
    }
  });
  const head = document.createElement("thead");
  head.append(row("th", "Quantity", runs.map((run) => run.protocol.label)));
  const body = document.createElement("tbody");
  body.append(...rows.map(([name, values]) => row("td", name, values)));
  home.replaceChildren(head, body);
}

export function sentences(runs: Run[], live: number[], now_us: number): string {
  const sides = runs.map((run) => {
    const n = run.numbers(live);
    const numbers = `${fixed(n.throughput, 1)} megabits per second, queue ${fixed(n.queue, 0)} kilobytes`;
    return `${run.protocol.label}: ${numbers}, fairness ${fixed(n.jain, 2)}, ${n.drops} lost.`;
  });
  return [`At ${(now_us / 1e6).toFixed(1)} seconds, ${live.length} flows.`, ...sides].join(" ");
}
