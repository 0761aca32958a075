// The data of a page: what `podqos simulate -o json` or `podqos blast -o json` prints, or an autopsy in
// words. Its types are made from the schemas (types.js).

import { bare } from "./format";
import type { Autopsy, BlastRadius, RunView, Session } from "./schema";

/** The data of a saved page. */
export interface Saved {
  session: Session;
  /** Answers by path; for a POST, the path is followed by a space and the body. */
  answers: Readonly<Record<string, unknown>>;
  route?: string;
  /** The addresses of the views that the page has everything for; missing in pages that a command wrote. */
  routes?: Readonly<Record<string, string>>;
  savedAt?: string;
}

/** The state of an app that was saved as one file. */
export interface SavedApp {
  kind?: undefined;
  app: Saved;
}

export type Data = RunView | BlastRadius | Autopsy | SavedApp;

/** Read the data embedded in the page; null if there is none. */
export function readData(): Data | null {
  const text = document.getElementById("run")?.textContent ?? "null";
  return JSON.parse(text) as Data | null;
}

export function isBlast(data: Data): data is BlastRadius {
  return data.kind === "BlastRadius";
}

export function isApp(data: Data): data is SavedApp {
  return "app" in data;
}

export function isAutopsy(data: Data): data is Autopsy {
  return data.kind === "Autopsy";
}

const taken = new WeakMap<RunView, ReadonlySet<string>>();

/** The name of a pod, with its namespace if another pod of the run has the same name. */
export function nameOf(run: RunView, key: string): string {
  let names = taken.get(run);
  if (names === undefined) {
    const all = run.pods.map((pod) => bare(pod.key));
    names = new Set(all.filter((name, index) => all.indexOf(name) !== index));
    taken.set(run, names);
  }
  return names.has(bare(key)) ? key : bare(key);
}
