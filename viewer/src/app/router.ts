// Where the reader is, in the hash of the address: `#/pod/NAMESPACE/NAME?source=ID`. All of a view's state is
// there, so an address can be kept and sent.

import { useLayoutEffect, useState } from "preact/hooks";

export interface Route {
  view: string;
  /** The path after the view: `["default", "web-0"]`. */
  parts: readonly string[];
  query: URLSearchParams;
}

type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [view = "", ...parts] = path.split("/").map(decoded);
  return { view, parts, query: new URLSearchParams(query) };
}

let known = { hash: "", route: parse("") };

/** The current route; views read it a thousand times per rendering. */
export function here(): Route {
  const { hash } = location;
  if (hash !== known.hash) known = { hash, route: parse(hash) };
  return known.route;
}

/** A part that cannot be decoded stays as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Return an address; null, false and empty values are left out, and the current source is kept. */
export function href(view: string, parts: readonly string[] = [], query: Query = {}): string {
  const given: Query = { source: here().query.get("source"), ...query };
  const all = Object.entries(given).flatMap(([name, value]) =>
    value === null || value === undefined || value === false || value === ""
      ? []
      : [[name, value === true ? "1" : String(value)]],
  );
  const path = [view, ...parts].map(encodeURIComponent).join("/");
  return `#/${path}${all.length > 0 ? `?${new URLSearchParams(all)}` : ""}`;
}

/** Navigate immediately: the address changes before the page is rendered. */
export function go(to: string, isStep = true): void {
  if (to === location.hash) return;
  if (isStep) history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Change the state of the current view; `typed` changes replace the history entry. */
export function change(query: Query, typed = false): void {
  const now = here();
  go(href(now.view, now.parts, { ...Object.fromEntries(now.query), ...query }), !typed);
}

export function useRoute(): Route {
  const [route, setRoute] = useState(here);
  useLayoutEffect(() => {
    const moved = () => setRoute(here());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return route;
}
