// SPDX-License-Identifier: Apache-2.0 OR MIT
// Tries the built page in Chromium, every scenario and control, at the width of a desk and of a phone:
// node web/test.mjs [FOLDER [PART]]. FOLDER gets screenshots to look at; default web/build/shots. PART selects tests by name.

import { copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, loadavg } from "node:os";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const here = (path) => new URL(path, import.meta.url);
const shots = process.argv[2] ?? here("build/shots").pathname;
const page_file = here("../python/flowstamp/page/index.html").pathname;
const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path));
if (!existsSync(page_file)) fail("python/flowstamp/page/index.html is not there; make web builds it");
if (chromium === undefined) fail("there is no Chromium; apt-get install chromium installs one");
mkdirSync(shots, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

function fail(message) {
  console.error(`web/test.mjs: ${message}`);
  process.exit(2);
}

let [passed, failed] = [0, 0];
async function test(name, body) {
  if (!name.includes(process.argv[3] ?? "")) return;
  try {
    await body();
    passed += 1;
    console.log(`test ${name} ... ok`);
  } catch (error) {
    failed += 1;
    console.log(`test ${name} ... FAILED\n  ${error.message}`);
  }
}
function check(truth, message) {
  if (!truth) throw new Error(message);
}
const equal = (a, b, what) => check(JSON.stringify(a) === JSON.stringify(b), `${what}: ${JSON.stringify(a)}, not ${JSON.stringify(b)}`);

// A container's root has no sandbox of its own to give.
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--allow-file-access-from-files"] });
const errors = [];
const tab = await browser.newPage();
tab.on("console", (message) => {
  // The test itself reads pixels back.
  if (["error", "warn"].includes(message.type()) && !message.text().includes("willReadFrequently")) errors.push(message.text());
});
tab.on("pageerror", (error) => errors.push(error.message));
tab.on("request", (request) => {
  if (!/^(file|data|blob):/.test(request.url())) errors.push(`asks for ${request.url()}`);
});

const address = pathToFileURL(page_file).href;
const state = () => tab.evaluate(() => window.flowstampLab.state());
const text = (selector) => tab.$eval(selector, (element) => element.textContent);
async function until(what, condition, ...values) {
  await tab.waitForFunction(condition, { timeout: 60_000 }, ...values).catch(() => {
    throw new Error(`${what} did not come`);
  });
}
const begun = () => until("the run", () => document.querySelectorAll(".run canvas.wire").length === 2 && window.flowstampLab.state().now_us > 0);
async function open(hash = "") {
  await tab.goto("about:blank");
  await tab.goto(address + hash);
  await begun();
}
const goTo = (time_s) => tab.evaluate((time) => window.flowstampLab.goTo(time), time_s * 1e6);
/** Saves a picture of the whole page, or of what the window shows. */
async function shot(name, fullPage = true) {
  // A bar that keeps to the window's edge would stand in the middle of the whole page.
  const style = fullPage ? await tab.addStyleTag({ content: ".transport { position: static !important }" }) : undefined;
  await tab.screenshot({ path: `${shots}/${name}.png`, fullPage });
  await style?.evaluate((element) => element.remove());
}

/** Moves a slider as a keyboard does. */
async function slide(id, keys) {
  await tab.focus(`#${id}`);
  for (const key of keys) await tab.keyboard.press(key);
  await until(`the change of ${id}`, (name) => window.flowstampLab.state().changes.some(([, key]) => key === name), id);
}

const wide = { width: 1280, height: 900 };
const phone = { width: 390, height: 844, isMobile: true, hasTouch: true, deviceScaleFactor: 2 };
const scenarios = ["five", "burst", "rtts", "parking", "cellular", "wifi"];

for (const [size, viewport] of [["wide", wide], ["phone", phone]]) {
  await tab.setViewport(viewport);
  for (const name of scenarios) {
    await test(`${name} ${size}`, async () => {
      await open(`#scenario=${name}`);
      await goTo(name === "burst" ? 4.2 : 12);
      await shot(`${name}-${size}`);
      const [scroll, room] = await tab.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      check(scroll <= room, `${scroll} pixels wide on ${room}`);
      const [rows, numbers] = await tab.$eval("#numbers", (table) => [table.rows.length, table.textContent]);
      check(rows > 7 && !numbers.includes("NaN"), `the table: ${numbers}`);
      equal((await state()).names.length, 2, "protocols");
    });
  }
}
await tab.setViewport(wide);

for (const scheme of ["light", "dark"]) {
  await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  for (const name of ["five", "wifi"]) {
    await test(`axe finds nothing serious in ${name}, ${scheme}`, async () => {
      await open(`#scenario=${name}`);
      await goTo(5);
      await tab.evaluate(axe);
      const found = await tab.evaluate(() => window.axe.run().then((result) => result.violations));
      const serious = found.filter((violation) => ["serious", "critical"].includes(violation.impact));
      equal(serious.map(({ id, nodes }) => [id, nodes.map((node) => node.target.join(" "))]), [], "violations");
      if (scheme === "dark") await shot(`${name}-dark`);
    });
  }
}
await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);

await test("axe finds nothing serious in a lesson and an explanation", async () => {
  await open("#lesson=xcp&scene=1");
  await tab.evaluate(() => document.querySelector("#reveal").setAttribute("open", ""));
  await tab.click("[popovertarget=help-rate]");
  await tab.evaluate(axe);
  const found = await tab.evaluate(() => window.axe.run().then((result) => result.violations));
  const serious = found.filter((violation) => ["serious", "critical"].includes(violation.impact));
  equal(serious.map(({ id, nodes }) => [id, nodes.map((node) => node.target.join(" "))]), [], "violations");
});

for (const name of scenarios) {
  await test(`every protocol runs in ${name}`, async () => {
    await open(`#scenario=${name}`);
    for (const protocol of await tab.$$eval("#protocol0 option", (options) => options.map((option) => option.value))) {
      const before = (await state()).generation;
      await tab.select("#protocol0", protocol);
      await until(protocol, (last) => window.flowstampLab.state().generation > last && window.flowstampLab.state().now_us > 0, before);
      await until(protocol, () => window.flowstampLab.state().now_us > 100_000);
      equal((await state()).names[0], protocol, "the left protocol");
      equal(await text("#note"), "", "the note");
    }
  });

  await test(`every control of ${name}`, async () => {
    await open(`#scenario=${name}&speed=8`);
    await goTo(3);
    await tab.click("#pause");
    for (const id of ["rate", "rtt", "buffer", "alpha", "beta", "flows"]) {
      const disabled = await tab.$eval(`#${id}`, (input) => input.disabled);
      if (disabled) {
        equal([name, id], ["cellular", "rate"], "what cannot be set");
        continue;
      }
      if (name === "wifi" && id === "buffer") continue;
      await slide(id, id === "rate" ? ["ArrowLeft", "ArrowLeft"] : ["ArrowRight"]);
      check(!(await text("#note")).startsWith("Not changed"), await text("#note"));
    }
    if (name === "wifi") {
      const before = (await state()).generation;
      await tab.focus("#buffer");
      await tab.keyboard.press("ArrowRight");
      await until("the new run", (last) => window.flowstampLab.state().generation > last, before);
      check((await text("#note")).includes("restarted"), await text("#note"));
    }
    const flows = (await state()).settings.flows;
    await tab.click("#drop");
    equal((await state()).settings.flows, flows + 1, "flows");
    if (name === "burst") await tab.click("#burst");
    if (name !== "cellular") {
      const rate = (await state()).settings.rate;
      await tab.click("#cut");
      check((await state()).settings.rate < rate, "the rate was not cut");
      await tab.click("#cut");
      equal((await state()).settings.rate, rate, "the rate restored");
    }
    const at = (await state()).now_us;
    await until("time", (last) => window.flowstampLab.state().now_us > last + 1e6, at);
    check(!(await text("#note")).startsWith("Not changed"), await text("#note"));
  });
}

await test("a link restores the run to the bit", async () => {
  await open("#scenario=five&left=xcp&right=rcp&speed=0.1");
  await goTo(2);
  await tab.click("#cut");
  await goTo(3);
  await tab.click("#drop");
  await tab.click("#copylink");
  await goTo(5);
  const known = await tab.evaluate(() => window.flowstampLab.digests());
  const hash = new URL(tab.url()).hash;
  check(hash.includes("changes=2000000%3Arate%3A13"), hash);
  await open(hash);
  await goTo(5);
  equal(await tab.evaluate(() => window.flowstampLab.digests()), known, "digests");
});

await test("the text has what came, and no more", async () => {
  await open("#scenario=burst&speed=8&changes=1000000:rate:20,2000000:burst:1");
  await goTo(3);
  const written = await text("#text");
  equal(written.match(/name = "burst \d"/g), ['name = "burst 1"', 'name = "burst 2"'], "bursts");
  check(written.includes('[["0s", "50Mbps"], ["1000000us", "20Mbps"]]') && written.includes('start = "2000001us"'), written);
  check(!written.includes("299999ms"), "what never begins");
});

await test("a link without sense is left aside", async () => {
  await open("#scenario=nothing&left=xxx&rate=-5&flows=2.5&speed=7&changes=a:b:c,5:rate:1e9,:,-1:rtt:40");
  const { id, names, settings, changes } = await state();
  equal([id, names, settings.rate, settings.flows, changes], ["five", ["xcp", "reno+red"], 50, 5, []], "the state");
});

await test("the keyboard is enough", async () => {
  await open();
  await tab.keyboard.press("Space");
  equal((await state()).paused, true, "paused by space");
  await tab.keyboard.press("Space");
  const wanted = await tab.$$eval("a, button, select, input, summary", (all) =>
    all.filter((element) => !element.disabled && element.checkVisibility()).map((element) => element.id || element.tagName),
  );
  const reached = new Set();
  for (let presses = 0; presses < wanted.length + 12; presses += 1) {
    await tab.keyboard.press("Tab");
    reached.add(await tab.evaluate(() => document.activeElement.id || document.activeElement.tagName));
  }
  equal(wanted.filter((id) => !reached.has(id)), [], "not reached by Tab");
  await tab.focus("#restart");
  const before = (await state()).generation;
  await tab.keyboard.press("Space");
  await until("the restart", (last) => window.flowstampLab.state().generation > last, before);
  equal((await state()).paused, false, "space on a button presses it");
});

await test("the numbers are read out", async () => {
  await open("#speed=8");
  await tab.click("#speak");
  await until("what is read out", () => document.querySelector("#spoken").textContent.includes("megabits per second"));
});

/** Pixels of a chart that have this colour, in a part of it that is given in CSS pixels. */
const pixels = (chart, [x, y, width, height], wanted) =>
  tab.evaluate(
    (at, place, [r, g, b]) => {
      const canvas = document.querySelectorAll("canvas.chart")[at];
      const scaled = place.map((value) => Math.round(value * devicePixelRatio));
      const { data } = canvas.getContext("2d").getImageData(...scaled);
      let found = 0;
      for (let i = 0; i < data.length; i += 4) {
        if (Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 90 && data[i + 3] > 200) found += 1;
      }
      return found;
    },
    chart,
    [x, y, width, height],
    wanted,
  );

await test("what happens is marked in the charts and listed", async () => {
  await open("#scenario=five&flows=2&changes=4000000:flows:5,6000000:rate:12,8000000:rtt:80");
  await goTo(10);
  const known = [[2, "+2", "flow 2 joined"], [4, "+3 flows", "flows 3 to 5 joined"], [6, "12 Mb/s", "the rate was cut to 12 Mb/s"]];
  const wanted = [...known, [8, "RTT 80 ms", "the round-trip time was raised to 80 ms"]];
  const found = await tab.evaluate(() => window.flowstampLab.events());
  equal(found.map(({ at_us, mark, text }) => [Math.round(at_us / 1e6), mark, text]), wanted, "events");
  const list = await tab.$$eval("#events li", (items) => items.map((item) => item.textContent));
  equal(list, wanted.map(([at, , what]) => `${at.toFixed(1)} s: ${what}`).reverse(), "the list");
  const [[{ left, per_s }]] = await tab.evaluate(() => window.flowstampLab.axes());
  for (let chart = 0; chart < 8; chart += 1) {
    for (const [at] of wanted) {
      const dark = await pixels(chart, [left + at * per_s - 1, 20, 3, 60], [22, 25, 28]);
      check(dark > 3, `chart ${chart} has ${dark} pixels of the mark at ${at} s`);
    }
    check((await pixels(chart, [left + 5 * per_s - 1, 20, 3, 60], [22, 25, 28])) === 0, `chart ${chart} has a mark at 5 s`);
  }
});

await test("the capacity is a line, and follows the rate", async () => {
  await open("#scenario=five&changes=6000000:rate:20");
  await goTo(12);
  const rows = await tab.evaluate(() => window.flowstampLab.rows()[0].map(({ time_s, values }) => [time_s, values[0]]));
  for (const [time, [traffic, capacity]] of rows) {
    if (time < 6 || time > 6.25) check(Math.abs(capacity - (time < 6 ? 50 : 20)) < 1e-6, `${capacity} Mb/s at ${time} s`);
    check(traffic <= capacity * 1.02, `${traffic} of ${capacity} Mb/s at ${time} s`);
  }
  // The axis reaches 60 Mb/s over 70 pixels below the names of the events.
  const [[{ left, per_s }]] = await tab.evaluate(() => window.flowstampLab.axes());
  for (const [from, rate] of [[2.2, 50], [8, 20]]) {
    const y = 16 + 70 * (1 - rate / 60);
    const line = await pixels(0, [left + from * per_s, y - 2, 3 * per_s, 4], [176, 0, 32]);
    check(line > 0.4 * 3 * per_s, `${line} pixels of the line at ${rate} Mb/s`);
  }
  await open("#scenario=cellular");
  await goTo(9);
  const varied = await tab.evaluate(() => new Set(window.flowstampLab.rows()[0].map(({ values }) => values[0][1])).size);
  check(varied > 20, `${varied} values of the trace's capacity`);
  await open("#scenario=wifi");
  await goTo(2);
  check(await tab.evaluate(() => window.flowstampLab.rows()[0].every(({ values }) => values[0][1] === null)), "a capacity of the air");
});

for (const [size, viewport] of [["wide", wide], ["phone", phone], ["odd", { width: 1111, height: 900, deviceScaleFactor: 1.5 }]]) {
  await test(`time axes are aligned to the pixel, ${size}`, async () => {
    await tab.setViewport(viewport);
    await open("#scenario=five&flows=16&speed=8");
    await goTo(47.3);
    const columns = await tab.evaluate(() => window.flowstampLab.axes());
    equal(columns.map((column) => column.length), [4, 4], "charts");
    for (const column of columns) equal(column, column.map(() => column[0]), "axes of a column");
    equal(columns[0][0].width, columns[1][0].width, "widths");
    equal(columns[0][0].drawn_s, columns[1][0].drawn_s, "times at the left edge");
  });
}

await test("a phone shows the charts before the controls", async () => {
  await tab.setViewport(phone);
  await open();
  const [chart, clock, controls, height] = await tab.evaluate(() => [
    ...["canvas.chart", "#clock", "#setup"].map((what) => document.querySelector(what).getBoundingClientRect().top),
    innerHeight,
  ]);
  check(chart < height / 2 && clock < height && controls > 2 * height, `charts at ${chart}, clock at ${clock}, controls at ${controls}`);
  for (const width of [360, 320]) {
    await tab.setViewport({ ...phone, width });
    const [scroll, room] = await tab.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    check(scroll <= room, `${scroll} pixels wide on ${room}`);
  }
});
await tab.setViewport(wide);

await test("gains are numbers, with the default beside them", async () => {
  const gains = async () => [await text("#value-alpha"), await text("#value-beta")];
  await open("#scenario=five&left=xcp&right=reno%2Bred");
  equal(await gains(), ["0.40 (default)", "0.226 (default)"], "XCP's");
  await open("#scenario=five&left=xcp&right=rcp");
  equal(await gains(), ["0.40 (default)", "XCP 0.226, RCP 0.500 (default)"], "XCP's and RCP's");
  check(!(await text("#text")).includes("alpha"), "a default in the text");
  await slide("alpha", ["ArrowRight"]);
  equal((await gains())[0], "0.45 (default 0.40)", "changed");
  await open("#scenario=five&left=sack&right=cubic");
  equal(await gains(), ["not used", "not used"], "without a router");
});

await test("each control is explained, and the pages are there", async () => {
  mkdirSync(`${shots}/lab`, { recursive: true });
  copyFileSync(page_file, `${shots}/lab/index.html`);
  const slug = (heading) => heading.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  const linked = new Set();
  for (const name of scenarios) {
    await tab.goto("about:blank");
    await tab.goto(`${pathToFileURL(`${shots}/lab/index.html`).href}#scenario=${name}`);
    await begun();
    for (const protocol of await tab.$$eval("#protocol0 option", (options) => options.map((option) => option.value))) {
      const pages = await tab.evaluate((left) => window.flowstampLab.explained("protocol0", [left, left]), protocol);
      check(pages.length > 0, `${protocol} has no page`);
      for (const [, page] of pages) linked.add(page);
    }
    const keys = await tab.$$eval("button.help", (buttons) => buttons.map((button) => button.getAttribute("popovertarget")));
    equal(keys.length, 10, "explained controls");
    for (const key of keys) {
      await tab.click(`[popovertarget="${key}"]`);
      check(await tab.$eval(`#${key}`, (box) => box.matches(":popover-open") && box.querySelector("p").textContent.length > 30), `${key} does not open`);
      for (const href of await tab.$$eval(`#${key} a`, (links) => links.map((link) => link.getAttribute("href")))) {
        check(href.startsWith("../"), href);
        linked.add(href.slice(3));
      }
      if (name === "five" && key === "help-alpha") await shot("explained-wide");
      await tab.keyboard.press("Escape");
    }
  }
  check(linked.size > 12, `${linked.size} pages`);
  for (const page of linked) {
    const [path, anchor] = page.split(".html#");
    const headings = readFileSync(here(`../docs/${path}.md`), "utf8").match(/^#+ .*$/gm).map(slug);
    check(headings.includes(anchor), `docs/${path}.md has no ${anchor}: ${headings}`);
  }
});

await open("#scenario=five");
const lessons = await tab.evaluate(() => window.flowstampLab.lessons);
equal(Object.values(lessons).map(({ title }) => title), ["Why TCP fills queues", "How XCP shares", "What RCP trades"], "lessons");
for (const [lesson, { title, scenes }] of Object.entries(lessons)) {
  for (const [at, scene] of scenes.entries()) {
    await test(`lesson "${title}", scene ${at + 1}, shows what its answer says`, async () => {
      await open(`#lesson=${lesson}&scene=${at + 1}`);
      await goTo(0); // pauses at once
      equal(await text("#scene-title"), scene.title, "the title");
      check((await text("#question")).endsWith("?"), "no question");
      check(!(await tab.$eval("#answer", (answer) => answer.checkVisibility())), "the answer is there before anybody asks");
      let [looked, numbers] = [-1, []];
      for (const [at_s, side, quantity, least, most] of scene.claims) {
        check(at_s <= scene.until_s, `a claim at ${at_s} s`);
        if (at_s !== looked) await goTo(at_s);
        if (at_s !== looked) numbers = await tab.evaluate(() => window.flowstampLab.numbers());
        looked = at_s;
        const value = numbers[side === "left" ? 0 : 1][quantity];
        check(value >= least && value <= most, `${side} ${quantity} at ${at_s} s is ${value}, not ${least} to ${most}`);
      }
      await tab.focus("#reveal summary");
      await tab.keyboard.press("Enter");
      check(await tab.$eval("#answer", (answer) => answer.checkVisibility()), "Enter does not show the answer");
      equal((await tab.$$("#steps a")).length, (at > 0) + (at + 1 < scenes.length), "steps");
      await tab.evaluate(() => document.activeElement.blur());
      await shot(`${lesson}-${at + 1}-wide`, false);
    });
  }
}

await test("a scene stops for its question, and lessons are left again", async () => {
  await open("#lesson=rcp&scene=1");
  await until("the end of the scene", () => window.flowstampLab.state().paused);
  equal((await state()).now_us, 3_000_000, "the time");
  check((await text("#note")).includes("stops here"), await text("#note"));
  await tab.evaluate(() => document.querySelector("#steps a").click());
  await until("scene 2", () => document.querySelector("#scene-number").textContent.startsWith("Scene 2"));
  await until("its run", () => window.flowstampLab.state().now_us > 0 && !window.flowstampLab.state().paused);
  await tab.click("#restart");
  await until("the scene anew", () => window.flowstampLab.state().settings.flows === 2);
  await tab.evaluate(() => document.querySelector("#lessons a").click());
  await until("the free experiment", () => document.querySelector("#lesson").hidden && window.flowstampLab.state().names[1] === "reno+red");
  await tab.setViewport(phone);
  await open("#lesson=xcp&scene=2");
  await goTo(20);
  await shot("lesson-phone");
  await shot("lesson-phone-window", false);
  await tab.setViewport(wide);
});

await test("sixteen flows at eight times real time run at 50 frames a second", async () => {
  await open("#scenario=five&flows=16&speed=8&left=xcp&right=reno%2Bred");
  await goTo(32);
  await tab.click("#pause");
  let best = 0;
  // Other work on this machine takes frames away; the best of a few runs counts.
  for (let run = 0; run < 8 && best < 55; run += 1) {
    const [frames, simulated] = await tab.evaluate(async () => {
      const [begin, from] = [performance.now(), window.flowstampLab.state().now_us];
      let count = 0;
      while (performance.now() - begin < 3000) {
        await new Promise(requestAnimationFrame);
        count += 1;
      }
      const passed = performance.now() - begin;
      return [(1000 * count) / passed, (window.flowstampLab.state().now_us - from) / 1000 / passed];
    });
    console.log(`  ${frames.toFixed(1)} frames/s at ${simulated.toFixed(1)} times real time, 16 flows, two runs`);
    if (simulated > 7.5) best = Math.max(best, frames);
  }
  const busy = loadavg()[0] > availableParallelism();
  if (best < 50 && busy) console.log(`  not judged: the machine's load is ${loadavg()[0]}`);
  else check(best >= 50, `${best} frames/s`);
});

await test("nothing was wrong on the console, and nothing was fetched", async () => equal(errors, [], "errors"));
await browser.close();
const word = failed === 0 ? "ok" : "FAILED";
console.log(`test result: ${word}. ${passed} passed; ${failed} failed; the browser lab in Chromium, pictures in ${shots}`);
process.exit(failed === 0 ? 0 : 1);
