// Writes src/schema.ts, the types of what pages show: what the schemas in docs/ say, as TypeScript. podqos
// prints every field, also one that has its default, so none is optional here.
import { readFileSync, writeFileSync } from "node:fs";

const SCALARS = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

/** Return the TypeScript of a schema; what it does not know is an error, and not `any`. */
function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `readonly (${typeOf(schema.items)})[]`;
  if (schema.type === "object" && schema.additionalProperties) {
    return `Readonly<Record<string, ${typeOf(schema.additionalProperties)}>>`;
  }
  if (SCALARS[schema.type]) return SCALARS[schema.type];
  throw new Error(`no TypeScript for ${JSON.stringify(schema)}`);
}

function declaration([name, schema]) {
  const about = schema.description ? `/** ${schema.description.replaceAll("*/", "* /")} */\n` : "";
  if (!schema.properties) return `${about}export type ${name} = ${typeOf(schema)};\n`;
  const fields = Object.entries(schema.properties).map(([field, type]) => `  ${field}: ${typeOf(type)};\n`);
  return `${about}export interface ${name} {\n${fields.join("")}}\n`;
}

const NAMES = ["simulate", "blast", "autopsy", "page"];

const types = new Map();
for (const name of NAMES) {
  const schema = JSON.parse(readFileSync(new URL(`../docs/schema/${name}.json`, import.meta.url), "utf8"));
  for (const [type, definition] of Object.entries(schema.$defs)) {
    const text = declaration([type, definition]);
    if (types.has(type) && types.get(type) !== text) throw new Error(`two types are called ${type}`);
    types.set(type, text);
  }
}
const head = `// Made by types.js from docs/schema/{${NAMES.join(",")}}.json.\n\n`;
writeFileSync(new URL("src/schema.ts", import.meta.url), head + [...types.values()].join("\n"));
