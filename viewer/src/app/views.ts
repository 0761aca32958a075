// The views of the app, in the order of the navigation. To add one: write a component that takes `ViewProps`, and name it
// here. `needs` is the name that the server lists among a source's views where it can give the data.

import { ClusterPage, podsToSave, turnOver } from "./cluster/page";
import { AutopsyPage } from "./autopsy/page";
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
      ["/", "to the filter"],
      ["← → Home End", "in a node: the pod that goes before or after, the first, the last"],
      ["↑ ↓", "in a node: the pod above or below"],
      ["Enter", "open the pod"],
      ["v", "blocks or table"],
    ],
    press: { v: turnOver },
    unsaved: "update itself, or show pods that it does not hold",
    toSave: podsToSave,
  },
  { id: "what-if", title: "What if", component: WhatIfPage, needs: "what-if", unsaved: "answer other edits", toSave: whatIfToSave, keys: [["/", "to the pod"], ["← →", "on a slider: less or more"]] },
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
    unsaved: "run the scenario again with other values",
  },
  { id: "blast", title: "Blast", component: BlastPage, needs: "blast", unsaved: "let the pods of other nodes leak" },
  { id: "forecast", title: "Forecast", component: ForecastPage, needs: "forecast", unsaved: "answer other settings", keys: [["← →", "on a slider: less or more"]] },
  { id: "check", title: "Check", component: CheckPage, needs: "check", unsaved: "make other fixes than it shows", keys: [["/", "to the filter"]] },
  { id: "autopsy", title: "Autopsy", component: AutopsyPage, needs: "autopsy", unsaved: "take other logs apart" },
  { id: "compare", title: "Compare", component: ComparePage, isInner: true, unsaved: "compare with other runs" },
  { id: "pod", title: "Pod", component: PodPage, isInner: true, unsaved: "show pods that it does not hold" },
];
