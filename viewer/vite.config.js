// Builds the page into one file: script and style are written into the HTML, so that it opens from file://
// without a network.
import { createHash } from "node:crypto";
import { defineConfig } from "vite";

/** Move the built script and style into the page, the only ones its policy allows; nothing else remains. */
function oneFile() {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["index.html"];
      for (const [name, part] of Object.entries(bundle)) {
        if (part === page) continue;
        const isScript = part.type === "chunk";
        const text = isScript ? part.code.replaceAll("</script", "<\\/script") : String(part.source);
        const tag = isScript ? /<script[^>]*src="[^"]*"[^>]*><\/script>/ : /<link rel="stylesheet"[^>]*>/;
        const inline = isScript ? `<script type="module">${text}</script>` : `<style>${text}</style>`;
        const hash = createHash("sha256").update(text).digest("base64");
        const directive = isScript ? "script-src" : "style-src";
        page.source = page.source
          .replace(tag, () => inline)
          .replace(`${directive} 'unsafe-inline'`, `${directive} 'sha256-${hash}'`);
        delete bundle[name];
      }
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [oneFile()],
  build: { target: "es2022", modulePreload: false, cssCodeSplit: false, assetsInlineLimit: 0 },
});
