// The views of the app, in the order of the navigation. To add one: write a component that takes `ViewProps`,
// and name it here. `needs` is the name that the server lists among a source's views where it can give the
// data.

import { ClusterPage, podsToSave, turnOver } from "./cluster/page";
import { clusterVerdict } from "./cluster/verdict";
import { AutopsyPage, openPasteBox } from "./autopsy/page";
import { BlastPage } from "./blast/page";
import { CheckPage } from "./check/page";
import { ForecastPage } from "./forecast/page";
import { PodPage } from "./pod/page";
import { ComparePage } from "./run/compare";
import { RunPage } from "./run/page";
import { WhatIfPage, whatIfToSave } from "./whatIf/page";
import type { View } from "./view";

export const VIEWS: readonly View[] = [
  {
    id: "cluster",
    title: "Cluster",
    component: ClusterPage,
    needs: "cluster",
    keys: [
      ["/", "focus the filter"],
      ["← → Home End", "in a node: previous, next, first or last pod in the order"],
      ["↑ ↓", "in a node: pod above or below"],
      ["Enter", "open the pod"],
      ["v", "switch between queue, blocks and table"],
    ],
    press: { v: turnOver },
    unsaved: "update itself or show pods that were not saved",
    toSave: podsToSave,
    verdict: clusterVerdict,
  },
  {
    id: "what-if",
    title: "What if",
    component: WhatIfPage,
    needs: "what-if",
    unsaved: "compute other changes",
    toSave: whatIfToSave,
    keys: [
      ["/", "focus the pod field"],
      ["← →", "on a slider: decrease or increase"],
    ],
  },
  {
    id: "run",
    title: "Run",
    component: RunPage,
    needs: "run",
    keys: [
      ["p", "play or pause"],
      ["← →", "move the cursor (Shift: further)"],
      ["j k", "next and previous victim"],
      ["z", "zoom to the victims, or show all"],
    ],
    unsaved: "run the scenario again with other values",
  },
  {
    id: "blast",
    title: "Blast",
    component: BlastPage,
    needs: "blast",
    unsaved: "simulate leaks on other nodes",
  },
  {
    id: "forecast",
    title: "Forecast",
    component: ForecastPage,
    needs: "forecast",
    unsaved: "compute other settings",
    keys: [["← →", "on a slider: decrease or increase"]],
  },
  {
    id: "check",
    title: "Check",
    component: CheckPage,
    needs: "check",
    unsaved: "compute other fixes",
    keys: [["/", "focus the filter"]],
  },
  {
    id: "autopsy",
    title: "Autopsy",
    component: AutopsyPage,
    isFree: true,
    keys: [
      ["p", "paste a log"],
      ["Ctrl+Enter", "in the paste box: explain it"],
    ],
    press: { p: openPasteBox },
    unsaved: "analyze other logs",
  },
  { id: "compare", title: "Compare", component: ComparePage, isInner: true, unsaved: "compare other runs" },
  { id: "pod", title: "Pod", component: PodPage, isInner: true, unsaved: "show pods that were not saved" },
];
