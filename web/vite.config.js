// SPDX-License-Identifier: Apache-2.0 OR MIT
import { defineConfig } from "vite";

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
  base: "./",
  plugins: [oneFile],
  build: {
    outDir: "../python/flowstamp/page",
    emptyOutDir: true,
    target: "es2022", assetsInlineLimit: Number.MAX_SAFE_INTEGER, modulePreload: false, reportCompressedSize: false },
});
