// What a view is, and what it knows of the app around it. Views import this, and `views.ts` imports views: never the other
// way round.

import type { JSX } from "preact";
import type { Route } from "./router";
import type { Live } from "./live";
import type { Request, Source } from "./source";
import type { ClusterView, Session, SourceInfo } from "../schema";

/** What a view knows of the app around it. */
export interface App {
  source: Source;
  session: Session;
  /** The source that is looked at. */
  info: SourceInfo;
  live: Live<ClusterView> | null;
  /** Return the address of an answer about the source: `path("cluster")`. */
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
  /** Not in the navigation: it is reached from another view. */
  isInner?: boolean;
  /** Keys and what they do, for the help. */
  keys?: readonly (readonly [string, string])[];
  /** What keys do that change the address alone: also before the view is drawn. */
  press?: Readonly<Record<string, () => void>>;
  /** What a saved page of it cannot do. */
  unsaved: string;
  /** What a saved page has to hold, also where it was asked for long ago, or is there to look around in. */
  toSave?: (props: ViewProps) => Promise<readonly Request[]>;
}
