// The views of the app, in the order of the navigation. To add one: write a component that takes `ViewProps`, and name it
// here. `needs` is the name that the server lists among a source's views where it can give the data.

import type { JSX } from "preact";
import { ClusterPage, podsToSave } from "./cluster/page";
import { AutopsyPage } from "./autopsy/page";
import { BlastPage } from "./blast/page";
import { CheckPage } from "./check/page";
import { ForecastPage } from "./forecast/page";
import { PodPage } from "./pod/page";
import { ComparePage } from "./run/compare";
import { RunPage } from "./run/page";
import { WhatIfPage } from "./whatIf/page";
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
  /** What else a saved page should hold, so that one can look around in it. */
  toSave?: (props: ViewProps) => Promise<readonly Request[]>;
}

export const VIEWS: readonly View[] = [
  {
    id: "cluster",
    title: "Cluster",
    component: ClusterPage,
    needs: "cluster",
    keys: [
      ["/", "to the filter"],
      ["← → Home End", "in a node: the pod that goes before or after, the first, the last"],
      ["↑ ↓", "in a node: the pod above or below"],
      ["Enter", "open the pod"],
      ["v", "blocks or table"],
    ],
    toSave: podsToSave,
  },
  { id: "what-if", title: "What if", component: WhatIfPage, needs: "what-if", keys: [["/", "to the pod"], ["← →", "on a slider: less or more"]] },
  {
    id: "run",
    title: "Run",
    component: RunPage,
    needs: "run",
    keys: [
      ["p", "play or pause"],
      ["← →", "move the cursor, with Shift further"],
      ["j k", "next and previous victim"],
      ["z", "all, or around the victims"],
    ],
  },
  { id: "blast", title: "Blast", component: BlastPage, needs: "blast" },
  { id: "forecast", title: "Forecast", component: ForecastPage, needs: "forecast", keys: [["← →", "on a slider: less or more"]] },
  { id: "check", title: "Check", component: CheckPage, needs: "check", keys: [["/", "to the filter"]] },
  { id: "autopsy", title: "Autopsy", component: AutopsyPage, needs: "autopsy" },
  { id: "compare", title: "Compare", component: ComparePage, isInner: true },
  { id: "pod", title: "Pod", component: PodPage, isInner: true },
];
