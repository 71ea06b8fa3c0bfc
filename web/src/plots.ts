// SPDX-License-Identifier: Apache-2.0 OR MIT
// Charts over the last seconds, and packets on the wire.

import type { Packet } from "./engine";
import type { Event } from "./events";
import type { Row } from "./run";

export const WINDOW_S = 20;

const dark = matchMedia("(prefers-color-scheme: dark)");
// Okabe and Ito's colours, which are told apart by the colour-blind; of the eight those that stand out from the paper.
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
const DARK = ["#56b4e9", "#e69f00", "#009e73", "#f0e442", "#d55e00", "#cc79a7", "#ffffff"];
const DASHES: (number[] | undefined)[] = [undefined, [7, 3], [2, 3], [9, 3, 2, 3]];

/** Line of what is not a flow: bursts, queues, the traffic of all flows. */
export const GREY = -1;
/** Line of a limit: the capacity or the buffer. */
export const LIMIT = -2;

export function onScheme(change: () => void): void {
  dark.addEventListener("change", change);
}

export function colour(line: number): string {
  if (line === GREY) return dark.matches ? "#9aa5ad" : "#6b757d";
  if (line === LIMIT) return dark.matches ? "#ff9d9d" : "#b00020";
  const palette = dark.matches ? DARK : LIGHT;
  return palette[line % palette.length];
}

export function dash(line: number): number[] | undefined {
  if (line === LIMIT) return [8, 4];
  return line === GREY ? undefined : DASHES[Math.floor(line / LIGHT.length) % DASHES.length];
}

/** A colour of the page, as a canvas takes it: `light-dark()` is resolved where it is used. */
function resolved(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value || "gray";
}

/** The least of a few round numbers that is not below `value`. */
function round(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 0.1)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}

/** The upper end of an axis that several charts have in common. It grows at once and shrinks by steps, so that it does not flicker. */
export class Extent {
  top = 1;
  update(most: number): void {
    if (most > this.top || most < this.top / 2.5) this.top = round(most * 1.02);
  }
}

const FONT = "12px system-ui, sans-serif";
/** Room beside and around the lines of a chart, pixels. All charts have the same, so their time axes are aligned. */
const LEFT = 46;
const RIGHT = 14;
const TOP = 6;
/** Above the first chart, for the names of events. */
const EVENTS = 16;
/** Below the last chart, for the time. */
const SECONDS = 20;
const TICK_S = 5;
/** The strip's room at the right for the width of a line, which would be cut off there. */
const SPARE = 4;

/** Keeps a canvas as large as its place on the page. */
function fit(canvas: HTMLCanvasElement, resized: () => void): void {
  new ResizeObserver(() => {
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((size) => Math.max(Math.round(size * scale), 1));
    if (canvas.width === width && canvas.height === height) return;
    Object.assign(canvas, { width, height });
    resized();
  }).observe(canvas);
}

function penOf(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const pen = canvas.getContext("2d");
  if (pen === null) throw new Error("the browser has no canvas");
  return pen;
}

export interface Place {
  /** The first chart of a column names the events; the last one has the time. */
  first: boolean;
  last: boolean;
  /** Height without the names and the time, pixels. */
  height: number;
}

/**
 * One chart of a column. Lines are drawn once, into a strip that moves to the left as time passes. A frame then costs a few
 * segments, not thousands, so that many flows at a high speed stay smooth.
 */
export class Chart {
  private readonly pen: CanvasRenderingContext2D;
  private readonly strip = document.createElement("canvas");
  private readonly stripPen = penOf(this.strip);
  private readonly colours = { text: resolved("--dim"), grid: resolved("--line"), ink: resolved("--ink") };
  /** Time and value of each line's last point, and the length drawn so far, which its dashes go on from. */
  private ends: ({ time_s: number; value: number; length: number } | undefined)[] = [];
  private drawnTo_s = -1;
  /** Pixels from time 0 to the strip's left edge. */
  private left = 0;
  private top = 0;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly which: number,
    private readonly lines: number[],
    private readonly extent: Extent,
    private readonly place: Place,
  ) {
    this.pen = penOf(canvas);
    canvas.style.height = `${this.above + place.height + (place.last ? SECONDS : TOP)}px`;
    fit(canvas, () => {
      this.top = 0;
      this.again?.();
    });
  }

  private again: (() => void) | undefined;

  private get above(): number {
    return this.place.first ? EVENTS : TOP;
  }

  private y(value: number): number {
    return this.above + this.place.height * (1 - value / this.extent.top);
  }

  /** Pixels of the chart that its lines have, how many a second takes, and the time at the left edge. */
  get axis(): { left: number; width: number; per_s: number; drawn_s: number } {
    const width = this.canvas.width / (devicePixelRatio || 1) - LEFT - RIGHT;
    return { left: LEFT, width, per_s: width / WINDOW_S, drawn_s: this.left / (width / WINDOW_S) };
  }

  draw(rows: Row[], now_s: number, events: Event[]): void {
    this.again = () => this.draw(rows, now_s, events);
    const { width, per_s } = this.axis;
    if (width < 1) return;
    const scale = devicePixelRatio || 1;
    // Whole pixels of the screen: the strip moves without blur, and all charts by the same amount.
    const left = Math.floor((Math.max(now_s, WINDOW_S) * per_s - width) * scale) / scale;
    this.move(left, width, scale);
    this.extend(rows, per_s, scale);
    this.frame(left, width, per_s, scale, events);
  }

  /** Moves the strip so that it begins at `left`, or empties it if what it has is of no use. */
  private move(left: number, width: number, scale: number): void {
    const { strip, stripPen } = this;
    const by = Math.round((left - this.left) * scale);
    const pixels = [Math.round((width + SPARE) * scale), this.canvas.height];
    const stale = this.top !== this.extent.top || strip.width !== pixels[0] || strip.height !== pixels[1];
    if (stale || by < 0 || by >= pixels[0]) {
      [strip.width, strip.height] = pixels;
      this.top = this.extent.top;
      this.drawnTo_s = -1;
      this.ends = this.lines.map(() => undefined);
      stripPen.rect(0, (this.above - 2) * scale, pixels[0], (this.place.height + 4) * scale);
      stripPen.clip();
    } else if (by > 0) {
      stripPen.setTransform(1, 0, 0, 1, 0, 0);
      stripPen.globalCompositeOperation = "copy";
      stripPen.drawImage(strip, -by, 0);
      stripPen.globalCompositeOperation = "source-over";
    }
    this.left = left;
  }

  /** Draws what has come since the last time. */
  private extend(rows: Row[], per_s: number, scale: number): void {
    const seen = rows.findLastIndex((row) => row.time_s <= this.drawnTo_s);
    const fresh = rows.slice(seen + 1);
    if (fresh.length === 0) return;
    this.drawnTo_s = fresh[fresh.length - 1].time_s;
    const pen = this.stripPen;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.lineJoin = "round";
    this.lines.forEach((line, at) => {
      let end = this.ends[at];
      pen.strokeStyle = colour(line);
      pen.lineWidth = line === LIMIT ? 1.5 : 1.75;
      pen.setLineDash(dash(line) ?? []);
      pen.lineDashOffset = end?.length ?? 0;
      pen.beginPath();
      if (end) pen.moveTo(end.time_s * per_s - this.left, this.y(end.value));
      for (const { time_s, values } of fresh) {
        const value = values[this.which][at];
        if (value === null) {
          end = undefined;
          continue;
        }
        const [x, y] = [time_s * per_s - this.left, this.y(value)];
        if (end) pen.lineTo(x, y);
        else pen.moveTo(x, y);
        const step = end ? Math.hypot((time_s - end.time_s) * per_s, y - this.y(end.value)) : 0;
        end = { time_s, value, length: (end?.length ?? 0) + step };
      }
      pen.stroke();
      this.ends[at] = end;
    });
  }

  /** Draws grid, events, lines and axes. */
  private frame(left: number, width: number, per_s: number, scale: number, events: Event[]): void {
    const { pen, canvas, colours, place } = this;
    const bottom = this.above + place.height;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.font = FONT;
    pen.fillStyle = colours.grid;
    for (const part of [0, 0.5, 1]) pen.fillRect(LEFT, Math.round(this.y(part * this.extent.top)), width, 1);
    const first = Math.ceil(left / per_s / TICK_S) * TICK_S;
    const ticks: [number, string][] = [];
    for (let at_s = first; at_s * per_s - left <= width; at_s += TICK_S) {
      ticks.push([Math.round(LEFT + at_s * per_s - left), `${at_s} s`]);
    }
    for (const [x] of ticks) pen.fillRect(x, this.above, 1, place.height);
    this.markers(events, left, width, per_s);
    pen.drawImage(this.strip, LEFT, 0, this.strip.width / scale, canvas.height / scale);
    pen.fillStyle = colours.text;
    pen.textAlign = "right";
    for (const part of [0, 0.5, 1]) {
      const value = part * this.extent.top;
      pen.fillText(`${Number(value.toPrecision(3))}`, LEFT - 6, this.y(value) + 4);
    }
    pen.textAlign = "center";
    if (place.last) for (const [x, text] of ticks) pen.fillText(text, x, bottom + 15);
  }

  private markers(events: Event[], left: number, width: number, per_s: number): void {
    const { pen } = this;
    pen.fillStyle = this.colours.ink;
    pen.textAlign = "left";
    let free = 0;
    for (const { at_us, mark } of events) {
      const x = Math.round(LEFT + (at_us / 1e6) * per_s - left);
      if (x < LEFT || x > LEFT + width) continue;
      for (let y = this.above; y < this.above + this.place.height; y += 5) pen.fillRect(x, y, 1, 3);
      // A name that would cover another is left out; the list below the charts has all of them.
      const room = pen.measureText(mark).width;
      if (!this.place.first || x < free || x + room > LEFT + width + RIGHT) continue;
      pen.fillText(mark, x, this.above - 4);
      free = x + room + 6;
    }
  }
}

const ROWS = 6;
const CELL = 6;

/** Packets queued before a link, on the left, and in flight, on the right. */
export class Wire {
  private readonly pen: CanvasRenderingContext2D;
  private readonly text = resolved("--dim");
  private readonly line = resolved("--line");

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.pen = penOf(canvas);
    fit(canvas, () => this.again?.());
  }

  private again: (() => void) | undefined;

  draw(packets: Packet[], lineOf: (group: number) => number): void {
    this.again = () => this.draw(packets, lineOf);
    const { canvas, pen } = this;
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.width / scale, canvas.height / scale];
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
    pen.font = FONT;
    pen.textAlign = "right";
    pen.fillText(`${waiting} waiting${waiting > room && width > 400 ? ` (${room} drawn)` : ""}`, door - 4, 13);
    pen.textAlign = "left";
    pen.fillText(`${moving} in flight`, door + 6, 13);
  }
}
