// What all pages share: a heading with facts, the outcome in one sentence, tiles, and the switch between dark and light.

import { h } from "./dom";

export interface Heading {
  title: string;
  facts: readonly string[];
  description: string;
  headline: string;
  tiles: readonly HTMLElement[];
  tools?: readonly (HTMLElement | null)[];
}

export function header(heading: Heading): HTMLElement {
  document.title = `${heading.title} – podqos`;
  const theme = h("button", { type: "button", class: "tool theme", title: "Toggle dark mode (t)", click: toggleTheme, "aria-label": "Toggle dark mode" }, "◐");
  return h(
    "header",
    {},
    h(
      "div",
      { class: "title" },
      h("h1", {}, heading.title),
      h("p", { class: "facts" }, ...heading.facts.map((fact) => h("span", {}, fact))),
      h("div", { class: "tools" }, ...(heading.tools ?? []), theme),
    ),
    heading.description ? h("p", { class: "description" }, heading.description) : null,
    h("p", { class: "headline" }, heading.headline),
    h("div", { class: "tiles" }, ...heading.tiles),
  );
}

export function tile(value: string, name: string, note = "", kind = ""): HTMLElement {
  return h("div", { class: `tile ${kind}` }, h("b", {}, value), h("span", {}, name), h("small", {}, note));
}

export function card(id: string, title: string, kind: string, ...content: HTMLElement[]): HTMLElement {
  return h("section", { class: `card ${kind}`, "aria-labelledby": id }, h("h2", { id }, title), ...content);
}

/** A command with a button that copies it; where there is no clipboard, such as in a file, it is selected. */
export function copyable(text: string): HTMLElement {
  const block = h("pre", { tabindex: 0 }, text);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection()?.selectAllChildren(block);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  };
  const button = h("button", { type: "button", class: "tool", click: copy, "aria-label": `Copy ${text}` }, "Copy");
  return h("div", { class: "copyable" }, block, button);
}

/** The content of an empty table cell. */
export const NONE = "–";

export interface Column<Row> {
  name: string;
  cell(row: Row): HTMLElement | string;
  number?: boolean;
}

/** A table whose rows become blocks on narrow screens; the first column names the row. */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], kind: (row: Row) => string = () => ""): HTMLElement {
  const cell = (column: Column<Row>, row: Row, index: number) => {
    const content = column.cell(row);
    const attributes = { class: `${column.number ? "number" : ""}${content === NONE ? " none" : ""}`, "data-name": column.name };
    return index === 0 ? h("th", { ...attributes, scope: "row" }, content) : h("td", attributes, content);
  };
  return h(
    "div",
    { class: "table" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...columns.map((column) => h("th", { scope: "col", class: column.number ? "number" : "" }, column.name)))),
      h("tbody", {}, ...rows.map((row) => h("tr", { class: kind(row) }, ...columns.map((column, index) => cell(column, row, index))))),
    ),
  );
}

/** `namespace/name`, which may be broken after the slash. */
export function breakable(key: string): HTMLElement {
  const slash = key.indexOf("/") + 1;
  return h("span", { class: "key" }, key.slice(0, slash), h("wbr"), key.slice(slash));
}

/** Inputs that are chosen or dragged, not typed into. */
const CHOSEN = ["range", "checkbox", "radio"];

/** Whether a key press is text input and not a shortcut. */
export function isTyping({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  const writes = target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && !CHOSEN.includes(target.type));
  return ctrlKey || metaKey || altKey || writes || target instanceof HTMLSelectElement;
}

export function toggleTheme(): void {
  const root = document.documentElement;
  const dark = root.dataset["theme"] ? root.dataset["theme"] === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset["theme"] = dark ? "light" : "dark";
}
