// Elements in one expression: h for HTML, s for SVG. Text is always text, never markup.

type Value = string | number | boolean | ((event: never) => void) | null | undefined;
type Attributes = Readonly<Record<string, Value>>;
type Child = globalThis.Node | string | null | undefined;

export function h<K extends keyof HTMLElementTagNameMap>(name: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(name), attributes, children);
}

export function s<K extends keyof SVGElementTagNameMap>(name: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill<E extends Element & ElementCSSInlineStyle>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    // The policy of the page allows no style attributes, but styles that a script sets.
    if (name === "style") element.style.cssText = String(value);
    else if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is globalThis.Node | string => child !== null && child !== undefined));
  return element;
}
