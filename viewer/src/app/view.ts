// What a view is, and what it knows of the app around it. Views import this, and `views.ts` imports views:
// never the other way round.

import type { JSX } from "preact";
import type { Route } from "./router";
import type { Live } from "./live";
import type { Request, Source } from "./source";
import type { ClusterView, Session, SourceInfo } from "../schema";
import type { Verdict } from "./verdict";

/** The context of a view. */
export interface App {
  source: Source;
  session: Session;
  /** The current source. */
  info: SourceInfo;
  live: Live<ClusterView> | null;
  /** Return the path of an answer about the source: `path("cluster")`. */
  path(rest: string): string;
}

export interface ViewProps {
  route: Route;
  app: App;
}

export interface View {
  id: string;
  title: string;
  component: (props: ViewProps) => JSX.Element;
  needs?: string;
  /** Shown even if no source is open. */
  isFree?: boolean;
  /** Not in the navigation: reached from another view. */
  isInner?: boolean;
  /** Keys and their effects, for the help. */
  keys?: readonly (readonly [string, string])[];
  /** Shortcuts that only change the address; they work even before the view is rendered. */
  press?: Readonly<Record<string, () => void>>;
  /** What a saved page of this view cannot do. */
  unsaved: string;
  /** Answers that a saved page must contain, in addition to those of the current view. */
  toSave?: (props: ViewProps) => Promise<readonly Request[]>;
  /** What a picture of the verdict shows; by default, what the view says at its top. */
  verdict?: (props: ViewProps) => Promise<Verdict>;
}
