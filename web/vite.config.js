// SPDX-License-Identifier: Apache-2.0 OR MIT
import { readdirSync, readFileSync } from "node:fs";
import { defineConfig } from "vite";

const module = await WebAssembly.instantiate(readFileSync(new URL("build/flowstamp.wasm", import.meta.url)), {});

// What the module says of its laws: "gains" or "senders".
function told(what) {
  const { exports } = module.instance;
  const request = new TextEncoder().encode(JSON.stringify({ [what]: {} }));
  const at = exports.flowstamp_request(request.length);
  new Uint8Array(exports.memory.buffer, at, request.length).set(request);
  const reply = exports.flowstamp_run();
  const bytes = new Uint8Array(exports.memory.buffer, reply, exports.flowstamp_reply_length());
  return JSON.parse(new TextDecoder().decode(bytes))[what];
}

const gains = Object.fromEntries(told("gains").map(([law, alpha, beta]) => [law, { alpha, beta }]));

// One file that also opens from a folder, where a browser lets a page load no other: script and style stand in it.
const oneFile = {
  name: "one-file",
  enforce: "post",
  generateBundle(_, bundle) {
    const page = bundle["index.html"];
    for (const [name, part] of Object.entries(bundle)) {
      const escaped = name.replaceAll(".", "\\.");
      if (part.type === "chunk") {
        // A module script of its own is deferred; so is one that is inline.
        const code = part.code.replaceAll("</script", "<\\/script");
        page.source = page.source.replace(new RegExp(`<script[^>]*${escaped}[^>]*></script>`), () => `<script type="module">${code}</script>`);
      } else if (name.endsWith(".css")) {
        page.source = page.source.replace(new RegExp(`<link[^>]*${escaped}[^>]*>`), () => `<style>${part.source}</style>`);
      } else continue;
      delete bundle[name];
    }
  },
};

export default defineConfig({
  define: {
    ROUTER_GAINS: JSON.stringify(gains),
    SENDERS: JSON.stringify(told("senders")),
    MODELS: JSON.stringify(readdirSync(new URL("../docs/models/", import.meta.url)).map((name) => name.replace(/\.md$/, ""))),
  },
  base: "./",
  plugins: [oneFile],
  build: {
    outDir: "../python/flowstamp/page",
    emptyOutDir: true,
    target: "es2022", assetsInlineLimit: Number.MAX_SAFE_INTEGER, modulePreload: false, reportCompressedSize: false },
});
