// SPDX-License-Identifier: Apache-2.0 OR MIT
// Tries the built page in Chromium, every scenario and control, at the width of a desk and of a phone:
// node web/test.mjs [FOLDER], which gets screenshots to look at; default web/build/shots.

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
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
tab.on("console", (message) => ["error", "warn"].includes(message.type()) && errors.push(message.text()));
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
const shot = (name) => tab.screenshot({ path: `${shots}/${name}.png`, fullPage: true });

/** Moves a slider as a keyboard does. */
async function slide(id, keys) {
  await tab.focus(`#${id}`);
  for (const key of keys) await tab.keyboard.press(key);
  await until(`the change of ${id}`, (name) => window.flowstampLab.state().changes.some(([, key]) => key === name), id);
}

const wide = { width: 1280, height: 900 };
const phone = { width: 360, height: 740, isMobile: true, hasTouch: true, deviceScaleFactor: 2 };
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
      check((await text("#note")).includes("begun anew"), await text("#note"));
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
  await open("#scenario=five&left=xcp&right=rcp&speed=8");
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
  const wanted = await tab.$$eval("button, select, input, summary", (all) =>
    all.filter((element) => !element.disabled && !element.hidden).map((element) => element.id || element.tagName),
  );
  const reached = new Set();
  for (let presses = 0; presses < wanted.length + 10; presses += 1) {
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

await open("#scenario=five&left=xcp&right=cubic&rate=50");
await new Promise((resolve) => setTimeout(resolve, 6000));
const { fps, share } = await state();
console.log(`50 Mb/s in real time, twice: ${fps.toFixed(0)} frames/s, ${(100 * share).toFixed(0)}% of the time simulating`);

await test("nothing was wrong on the console, and nothing was fetched", async () => equal(errors, [], "errors"));
await browser.close();
const word = failed === 0 ? "ok" : "FAILED";
console.log(`test result: ${word}. ${passed} passed; ${failed} failed; the browser lab in Chromium, pictures in ${shots}`);
process.exit(failed === 0 ? 0 : 1);
