// SPDX-License-Identifier: Apache-2.0 OR MIT
// Charts over the last seconds, and packets on the wire.

import uPlot from "uplot";
import type { Packet } from "./engine";

export const WINDOW_S = 20;

const dark = matchMedia("(prefers-color-scheme: dark)");
// Okabe and Ito's colours, which are told apart by the colour-blind; of the eight those that stand out from the paper.
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
const DARK = ["#56b4e9", "#e69f00", "#009e73", "#f0e442", "#d55e00", "#cc79a7", "#ffffff"];
const DASHES: (number[] | undefined)[] = [undefined, [7, 3], [2, 3], [9, 3, 2, 3]];

/** What is not a line of its own is grey. */
export const GREY = -1;

export function onScheme(change: () => void): void {
  dark.addEventListener("change", change);
}

export function colour(line: number): string {
  const palette = dark.matches ? DARK : LIGHT;
  return line === GREY ? (dark.matches ? "#9aa5ad" : "#6b757d") : palette[line % palette.length];
}

export function dash(line: number): number[] | undefined {
  return line === GREY ? undefined : DASHES[Math.floor(line / LIGHT.length) % DASHES.length];
}

function ink(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "gray";
}
/** A colour of the page, as a canvas takes it: `light-dark()` is resolved where it is used. */
function resolved(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value || ink(name);
}

/** The least of a few round numbers that is not below `value`. */
function round(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-3)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}

/** The upper end of an axis that several charts have in common. It grows at once and shrinks by steps, so that it does not flicker. */
export class Extent {
  top = 1;
  update(most: number): void {
    if (most > this.top || most < this.top / 3) this.top = round(most * 1.02);
  }
}

export class Chart {
  private readonly plot: uPlot;

  constructor(
    private readonly home: HTMLElement,
    label: string,
    lines: { name: string; line: number }[],
    private readonly extent: Extent,
  ) {
    home.setAttribute("role", "img");
    home.setAttribute("aria-label", `${label}. The table below has the numbers.`);
    const [grid, text] = [resolved("--line"), resolved("--dim")];
    const font = "12px system-ui, sans-serif";
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 }, font };
    const seconds = (_: uPlot, splits: number[]) => splits.map((split) => `${split} s`);
    this.plot = new uPlot(
      {
        width: Math.max(home.clientWidth, 50),
        height: 150,
        padding: [6, 12, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: false, auto: false }, y: { auto: false, range: () => [0, extent.top] } },
        axes: [
          { ...axis, size: 26, values: seconds, space: 60 },
          { ...axis, size: 46, space: 28 },
        ],
        series: [
          {},
          ...lines.map(({ name, line }) => ({
            label: name,
            stroke: colour(line),
            dash: dash(line),
            width: 1.75,
            points: { show: false },
          })),
        ],
      },
      [[], ...lines.map(() => [])] as uPlot.AlignedData,
      home,
    );
    new ResizeObserver(() => {
      if (home.clientWidth > 0) this.plot.setSize({ width: home.clientWidth, height: 150 });
    }).observe(home);
  }

  draw(data: (number | null)[][], now_s: number): void {
    this.plot.batch(() => {
      this.plot.setData(data as uPlot.AlignedData, false);
      const end = Math.max(now_s, WINDOW_S);
      this.plot.setScale("x", { min: end - WINDOW_S, max: end });
      this.plot.setScale("y", { min: 0, max: this.extent.top });
    });
  }

  remove(): void {
    this.plot.destroy();
    this.home.replaceChildren();
  }
}

const ROWS = 6;
const CELL = 6;

/** What waits before a link, on the left, and what is on its way, on the right. */
export class Wire {
  private readonly pen: CanvasRenderingContext2D;
  private text = "";
  private line = "";

  constructor(private readonly canvas: HTMLCanvasElement) {
    const pen = canvas.getContext("2d");
    if (pen === null) throw new Error("the browser has no canvas");
    this.pen = pen;
    this.colours();
  }

  colours(): void {
    this.text = resolved("--dim");
    this.line = resolved("--line");
  }

  draw(packets: Packet[], lineOf: (group: number) => number): void {
    const { canvas, pen } = this;
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const door = Math.round(width * 0.4);
    const [top, middle] = [20, 20 + (ROWS * CELL) / 2];
    pen.fillStyle = this.line;
    pen.fillRect(door, middle - 1, width - door - 8, 2);
    pen.fillRect(door - 2, top - 3, 3, ROWS * CELL + 6);
    let [waiting, moving] = [0, 0];
    const room = Math.floor((door - 12) / CELL) * ROWS;
    for (const [group, data, part] of packets) {
      pen.fillStyle = data ? colour(lineOf(group)) : this.text;
      if (part < 0) {
        if (waiting < room) {
          const column = Math.floor(waiting / ROWS);
          pen.fillRect(door - 5 - (column + 1) * CELL, top + (waiting % ROWS) * CELL, CELL - 1, CELL - 1);
        }
        waiting += 1;
      } else {
        const at = door + 2 + (part / 1000) * (width - door - 14);
        pen.fillRect(at, middle - (data ? 10 : 5), 3, data ? 20 : 10);
        moving += 1;
      }
    }
    pen.fillStyle = this.text;
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.fillText(`${waiting} wait${waiting > room && width > 400 ? ` (${room} drawn)` : ""}`, door - 4, 13);
    pen.textAlign = "left";
    pen.fillText(`${moving} on their way`, door + 6, 13);
  }
}
