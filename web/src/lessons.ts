// SPDX-License-Identifier: Apache-2.0 OR MIT
// Guided lessons: scenes with one question each. The page's test reads each scene's claims from the running simulation.

import { type Setup, setup } from "./address";
import type { Change, Settings } from "./scenarios";

/** At a time, a quantity of the left or the right side lies between two values. Quantities are those of `Numbers`, or a flow. */
type Claim = [at_s: number, side: "left" | "right", quantity: string, least: number, most: number];

interface Scene {
  title: string;
  /** The plot to watch. */
  text: string;
  question: string;
  answer: string;
  id: string;
  names: [string, string];
  settings?: Partial<Settings>;
  changes?: Change[];
  speed: number;
  /** The scene stops here, for the question. */
  until_s: number;
  /** The answer's numbers. */
  claims: Claim[];
}

interface Lesson {
  title: string;
  scenes: Scene[];
}

export const LESSONS: Record<string, Lesson> = {
  queues: {
    title: "Why TCP fills queues",
    scenes: [
      {
        title: "One flow, one link",
        text: "One TCP flow has a link of 20 Mb/s to itself. The first run is TCP Reno with selective acks (SACK), and the second is CUBIC. Nobody tells a sender the rate of the link: it has to find out.",
        question: "The link is full after a few seconds. Why do both queues keep growing?",
        answer:
          "A TCP sender raises its window until a packet is lost, and none is lost before the buffer of 250 kB is full. The throughput has long been 19.2 Mb/s. More packets in flight only wait longer: the round-trip time is above 100 ms instead of 40 ms.",
        id: "five",
        names: ["sack", "cubic"],
        settings: { rate: 20, flows: 1 },
        speed: 4,
        until_s: 20,
        claims: [
          [5, "left", "used", 0.99, 1.01],
          [5, "right", "used", 0.99, 1.01],
          [20, "left", "peak", 249, 251],
          [20, "right", "peak", 249, 251],
          [20, "left", "throughput", 19.1, 19.3],
          [20, "right", "throughput", 19.1, 19.3],
          [20, "left", "rtt", 100, 150],
          [20, "right", "rtt", 100, 150],
        ],
      },
      {
        title: "A larger buffer",
        text: "At 10 s the buffer becomes four times as large: 1000 kB instead of 250 kB. The rate of the link stays at 20 Mb/s.",
        question: "What does CUBIC gain from the larger buffer?",
        answer:
          "Only delay. The link was full before, and the throughput stays at 19.2 Mb/s. CUBIC fills the new buffer as well, and the round-trip time rises from 116 ms to 360 ms. This is called bufferbloat. XCP keeps either buffer almost empty.",
        id: "five",
        names: ["cubic", "xcp"],
        settings: { rate: 20, flows: 1 },
        changes: [[10_000_000, "buffer", 1000]],
        speed: 4,
        until_s: 30,
        claims: [
          [10, "left", "throughput", 19.1, 19.3],
          [10, "left", "rtt", 115, 118],
          [30, "left", "throughput", 19.1, 19.3],
          [30, "left", "rtt", 358, 362],
          [30, "left", "peak", 990, 1001],
          [30, "right", "peak", 0, 5],
          [30, "right", "throughput", 19.1, 19.3],
        ],
      },
      {
        title: "An earlier signal",
        text: "Both sides run CUBIC. On one side, CoDel begins to drop packets when every packet of the last 100 ms has waited for more than 5 ms.",
        question: "CoDel drops packets long before the buffer is full. What is gained?",
        answer:
          "Delay. A loss is the only signal that CUBIC understands, and CoDel sends it early. Both sides carry 19 Mb/s at 20 s, but the mean queue is 7 kB instead of 225 kB, and the round-trip time is 43 ms instead of 130 ms.",
        id: "five",
        names: ["cubic", "cubic+codel"],
        settings: { rate: 20, flows: 2 },
        speed: 4,
        until_s: 20,
        claims: [
          [20, "left", "throughput", 18.9, 19.3],
          [20, "right", "throughput", 18.9, 19.3],
          [20, "left", "queue", 220, 230],
          [20, "right", "queue", 6, 7.5],
          [20, "left", "rtt", 129, 131],
          [20, "right", "rtt", 42, 44],
        ],
      },
      {
        title: "Feedback without loss",
        text: "CUBIC again, now beside XCP. XCP's routers write into each packet by how much the sender should change its window.",
        question: "XCP fills the link too. Why does it lose no packet?",
        answer:
          "The router tells senders the spare capacity, so they need not fill the buffer to find it. XCP carries the same 19.2 Mb/s with a queue of 1 kB. It has lost no packet, and CUBIC more than 800.",
        id: "five",
        names: ["cubic", "xcp"],
        settings: { rate: 20, flows: 2 },
        speed: 4,
        until_s: 20,
        claims: [
          [20, "left", "throughput", 19.1, 19.3],
          [20, "right", "throughput", 19.1, 19.3],
          [20, "right", "queue", 0, 1.5],
          [20, "right", "drops", 0, 0],
          [20, "left", "drops", 801, 900],
        ],
      },
    ],
  },
  xcp: {
    title: "How XCP shares",
    scenes: [
      {
        title: "Newcomers",
        text: "Five flows join a link of 50 Mb/s, two seconds apart. The fair share of five flows is 9.6 Mb/s of payload.",
        question: "Flow 5 joins at 8 s. When do all five flows have equal shares?",
        answer:
          "With XCP after two seconds: at 10 s each flow has 9.2 to 9.8 Mb/s, and Jain's index is 1.00. The router moves capacity from flows above their share to flows below it. With Reno, the shares at 12 s still range from 5.4 to 14.2 Mb/s.",
        id: "five",
        names: ["xcp", "reno+red"],
        speed: 2,
        until_s: 12,
        claims: [
          [10, "left", "jain", 0.995, 1],
          [10, "left", "flow 5", 9.2, 9.8],
          [10, "left", "flow 1", 9.2, 9.8],
          [12, "right", "flow 1", 5.3, 5.5],
          [12, "right", "flow 4", 14.1, 14.3],
        ],
      },
      {
        title: "Near and far",
        text: "The four flows have round-trip times of 30, 60, 120 and 240 ms. They start together.",
        question: "Flow 4 has eight times the round-trip time of flow 1. Does it get an eighth?",
        answer:
          "With XCP it gets an equal share: every flow has 12 Mb/s. Each packet carries its sender's window and round-trip time, so the router can compute a change of the rate. TCP with SACK adds one packet to its window in each round trip, so the near flow grows faster: flow 1 has 31.7 Mb/s and flow 4 has 1.9.",
        id: "rtts",
        names: ["xcp", "sack"],
        speed: 4,
        until_s: 20,
        claims: [
          ...[1, 2, 3, 4].map((flow): Claim => [20, "left", `flow ${flow}`, 11.8, 12.2]),
          [20, "right", "flow 1", 31.6, 31.8],
          [20, "right", "flow 4", 1.85, 1.95],
        ],
      },
      {
        title: "Three links",
        text: "Flows 1 and 2 cross three links. On each link they meet one flow that crosses only this link. The middle link is the slowest, at 30 Mb/s.",
        question: "Do the long flows pay for each link that they cross?",
        answer:
          "With XCP they do not. Three flows share the middle link, and each has about 9.6 Mb/s. The short flows on the other links take what is left there. This is max-min fairness. With SACK, each link adds losses and delay to the long flows: at 10 s they have 1.2 and 1.4 Mb/s, and the short flow on the middle link has 26.",
        id: "parking",
        names: ["xcp", "sack"],
        speed: 2,
        until_s: 10,
        claims: [
          [10, "left", "flow 1", 9.3, 9.9],
          [10, "left", "flow 2", 9.3, 9.9],
          [10, "left", "cross.2", 9.3, 9.9],
          [10, "left", "cross.3", 30, 40],
          [10, "right", "flow 1", 1.15, 1.25],
          [10, "right", "flow 2", 1.35, 1.45],
          [10, "right", "cross.2", 25.5, 26.5],
        ],
      },
      {
        title: "The rate falls",
        text: "Five flows share 50 Mb/s. At 14 s the rate falls to 12 Mb/s.",
        question: "How many packets does each side lose, and how long does the queue last?",
        answer:
          "XCP loses no packet. Its queue jumps to 192 kB, because feedback takes a round trip to arrive. Two seconds later the queue is almost empty. SACK's queue was already long when the rate fell, so SACK loses 180 packets. Four seconds later its mean queue is still 212 kB.",
        id: "five",
        names: ["xcp", "sack"],
        changes: [[14_000_000, "rate", 12]],
        speed: 2,
        until_s: 18,
        claims: [
          [14, "left", "drops", 0, 0],
          [14, "right", "drops", 1009, 1009],
          [16, "left", "peak", 190, 194],
          [16, "left", "queue", 0, 15],
          [18, "left", "drops", 0, 0],
          [18, "right", "drops", 1189, 1189],
          [18, "right", "queue", 210, 214],
        ],
      },
      {
        title: "Gains that are too large",
        text: "The flows of scene 2 again. This time the router's α and β are both 1; their defaults are 0.40 and 0.226.",
        question: "XCP now gives out all spare capacity at once. Why is less of the link used?",
        answer:
          "Feedback is a round trip old when it takes effect. A router that corrects the whole error each time corrects it again before it sees the result, so the queue swings. At 20 s XCP uses 89% of the link, with a mean queue of 91 kB. Flow 4 has 22.9 Mb/s and flow 1 has 5.5. For flows with equal round-trip times, XCP's paper proves stability for α below 0.56.",
        id: "rtts",
        names: ["xcp", "sack"],
        settings: { alpha: 1, beta: 1 },
        speed: 4,
        until_s: 20,
        claims: [
          [20, "left", "used", 0.88, 0.895],
          [20, "left", "queue", 90, 92],
          [20, "left", "flow 4", 22.8, 22.9],
          [20, "left", "flow 1", 5.4, 5.5],
        ],
      },
    ],
  },
  rcp: {
    title: "What RCP trades",
    scenes: [
      {
        title: "A newcomer",
        text: "An RCP router computes one rate and gives it to every flow. An XCP router computes a change for each packet. A second flow joins at 2 s.",
        question: "Which protocol gives the newcomer its share first?",
        answer:
          "RCP. Flow 2 starts at the rate that flow 1 has, and the router lowers the rate for both. In the third second the flows have 24.5 and 21.8 Mb/s with RCP, and 33.1 and 14.8 with XCP, where flow 2 grows step by step. RCP's price: for one round trip both flows send at the old rate, so its queue jumps to 244 kB and 37 packets are lost.",
        id: "five",
        names: ["xcp", "rcp"],
        settings: { flows: 2 },
        speed: 0.5,
        until_s: 3,
        claims: [
          [3, "left", "flow 1", 33, 33.2],
          [3, "left", "flow 2", 14.7, 14.9],
          [3, "right", "flow 1", 24.4, 24.6],
          [3, "right", "flow 2", 21.7, 21.9],
          [3, "right", "peak", 243, 245],
          [3, "right", "drops", 37, 37],
          [3, "left", "drops", 0, 0],
        ],
      },
      {
        title: "Fourteen newcomers at once",
        text: "Two flows share the link. At 8 s fourteen more join in the same moment.",
        question: "What does RCP pay for its fast start?",
        answer:
          "Loss. Each newcomer starts at the rate for two flows, 24 Mb/s. The buffer overflows, and RCP loses more than 1500 packets. Over the next second it uses 35% of the link. XCP admits newcomers slowly: it loses no packet, and its queue stays below 40 kB. RCP is the first to share evenly again, at 9.5 s.",
        id: "five",
        names: ["xcp", "rcp"],
        settings: { flows: 2 },
        changes: [[8_000_000, "flows", 16]],
        speed: 1,
        until_s: 10,
        claims: [
          [8, "right", "flow 1", 23.5, 24.5],
          [8, "right", "drops", 0, 50],
          [9, "right", "drops", 1600, 1700],
          [9, "right", "peak", 249, 251],
          [9, "right", "used", 0.345, 0.355],
          [9, "left", "used", 0.99, 1.01],
          [9.5, "right", "jain", 0.999, 1],
          [9.5, "left", "jain", 0, 0.95],
          [10, "left", "drops", 0, 0],
          [10, "left", "peak", 0, 40],
        ],
      },
      {
        title: "The rate falls",
        text: "Three flows share 50 Mb/s. At 25 s the rate falls to 12 Mb/s.",
        question: "Both queues drain. Which protocol keeps the link full meanwhile?",
        answer:
          "XCP. It still uses 100% of the link a second later, while its queue drains. RCP lowers one rate for all flows until its queue is gone, and goes too low: over the first second it uses 38% of the link, and over the next 93%. One rate for all is simple and fast, and coarser.",
        id: "five",
        names: ["xcp", "rcp"],
        settings: { flows: 3 },
        changes: [[25_000_000, "rate", 12]],
        speed: 4,
        until_s: 28,
        claims: [
          [25, "left", "used", 0.99, 1.01],
          [25, "right", "used", 0.99, 1.01],
          [26, "left", "used", 0.99, 1.01],
          [26, "right", "used", 0.375, 0.385],
          [27, "left", "used", 0.99, 1.01],
          [27, "right", "used", 0.92, 0.935],
          [28, "left", "queue", 0, 5],
          [28, "right", "queue", 0, 5],
        ],
      },
    ],
  },
};

export const sceneSetup = (scene: Scene): Setup => {
  const made = setup(scene.id);
  const { names, speed, changes = [] } = scene;
  return { ...made, names: [...names], speed, changes: [...changes], settings: { ...made.settings, ...scene.settings } };
};

/** The scene that a part of the page's address names. */
export function sceneOf(hash: string): { lesson: string; number: number; scene: Scene } | undefined {
  const parts = new URLSearchParams(hash.slice(1));
  const lesson = parts.get("lesson");
  if (lesson === null || !Object.hasOwn(LESSONS, lesson)) return undefined;
  const { scenes } = LESSONS[lesson];
  const number = Number(parts.get("scene") ?? 1);
  const scene = scenes[number - 1];
  return scene ? { lesson, number, scene } : { lesson, number: 1, scene: scenes[0] };
}

const address = (lesson: string, number: number) => `#lesson=${lesson}&scene=${number}`;

/** Fills the list of lessons and, in a lesson, the panel with its scene. */
export function showLesson(now: ReturnType<typeof sceneOf>): void {
  const element = (id: string) => document.getElementById(id)!;
  const anchor = (href: string, textContent: string, current = false) => {
    const made = Object.assign(document.createElement("a"), { href, textContent });
    if (current) made.setAttribute("aria-current", "true");
    return made;
  };
  const lessons = Object.entries(LESSONS).map(([name, { title }]) => anchor(address(name, 1), title, name === now?.lesson));
  element("lessons").replaceChildren(anchor("#", "Free experiment", now === undefined), ...lessons);
  element("lesson").hidden = now === undefined;
  // The scene's own text tells what is shown.
  element("about").hidden = now !== undefined;
  if (now === undefined) return;
  const { lesson, number, scene } = now;
  const { scenes } = LESSONS[lesson];
  element("scene-number").textContent = `Scene ${number} of ${scenes.length}`;
  element("scene-title").textContent = scene.title;
  element("scene-text").textContent = scene.text;
  element("question").textContent = scene.question;
  element("answer").textContent = scene.answer;
  (element("reveal") as HTMLDetailsElement).open = false;
  const steps: HTMLElement[] = [];
  if (number > 1) steps.push(anchor(address(lesson, number - 1), "Back"));
  if (number < scenes.length) steps.push(anchor(address(lesson, number + 1), "Next scene"));
  element("steps").replaceChildren(...steps);
}
