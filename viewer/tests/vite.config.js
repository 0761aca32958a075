// Bundles the unit tests for node's own test runner, which cannot read TypeScript before Node.js 22.
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = fileURLToPath(new URL(".", import.meta.url));
const input = readdirSync(here).filter((name) => name.endsWith(".test.ts"));

export default defineConfig({
  root: here,
  logLevel: "warn",
  build: {
    ssr: true,
    target: "node20",
    outDir: fileURLToPath(new URL("../node_modules/.tests", import.meta.url)),
    emptyOutDir: true,
    rolldownOptions: { input: input.map((name) => here + name), output: { entryFileNames: "[name].mjs" } },
  },
  ssr: { noExternal: true },
});
