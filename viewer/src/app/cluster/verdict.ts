// The verdict of the cluster view, to share: who is first in both orders on the node with the least headroom,
// and the fix.

import { about } from "../../format";
import type { ClusterView, NodePanel } from "../../schema";
import { leftOn, leftText } from "../headroom";
import { KERNEL, KUBELET, type Ranked, type Verdict } from "../verdict";
import type { ViewProps } from "../view";
import { keyOf, panelsOf, placeOf, type Order, type Panel } from "./model";

const MOST = 5;

interface Edit {
  change: string;
  target?: string;
  then?: string;
  remedy?: { change: string; costs: readonly string[] } | null;
}

/** The parts of the answer card that are drawn. */
interface Answer {
  growth?: { text: string } | null;
  fix?: { edit: Edit } | null;
  noFix?: string;
}

export async function clusterVerdict({ app, route }: ViewProps): Promise<Verdict> {
  const view = app.live?.cluster ?? (await app.source.ask<ClusterView>({ path: app.path("cluster") }));
  const chosen = route.query.get("node");
  const meant = chosen ?? view.nextDeaths[0]?.node;
  const panels = panelsOf(view);
  const isRanked = ({ node }: Panel) => node.nextEvicted !== null || node.nextKilled !== null;
  const panel = panels.find(({ node }) => node.name === meant) ?? panels.find(isRanked);
  const path = app.path(chosen === null ? "answer" : `answer?node=${encodeURIComponent(chosen)}`);
  const answer = app.source.answers(app.info.id)[path] as Answer | undefined;
  const facts = [view.name, ...(view.takenAt ? [new Date(view.takenAt).toLocaleString("en-GB")] : [])];
  if (panel === undefined) return { title: "No node has pods", facts, headline: "", orders: [], notes: [] };
  return {
    title: "Who dies first?",
    facts,
    headline: headroom(panel.node, view.nodes.length > 1 && chosen === null),
    orders: [
      { title: "Eviction order", colour: KUBELET, rows: first(panel, "kubelet") },
      { title: "OOM kill order", colour: KERNEL, rows: first(panel, "kernel") },
    ],
    notes: [...reasons(panel.node), ...(answer === undefined ? [] : answered(answer))],
  };
}

function headroom(node: NodePanel, isLeast: boolean): string {
  const name = node.name || "One assumed node";
  const left = leftOn(node);
  if (left === null) return name;
  const which = isLeast ? `${name}, the node with the least headroom,` : name;
  return `${which} ${left.bytes < 0 ? "is" : "has"} ${leftText(left)}`;
}

function first(panel: Panel, order: Order): Ranked[] {
  const ranked = panel.by(order).filter((pod) => placeOf(pod, order) !== null);
  return ranked.slice(0, MOST).map((pod) => ({
    pod: keyOf(pod),
    note: pod.usedBytes === null ? `requests ${about(pod.requestedBytes)}` : `uses ${about(pod.usedBytes)}`,
    qosClass: pod.qosClass,
  }));
}

function reasons(node: NodePanel): (readonly [string, string])[] {
  const told = (victim: NodePanel["nextEvicted"], what: string): (readonly [string, string])[] => {
    const why = (victim as { explanation?: string } | null)?.explanation ?? victim?.reason ?? "";
    return victim !== null && why ? [[what, `${victim.pod}: ${why}`]] : [];
  };
  return [...told(node.nextEvicted, "Evicted first"), ...told(node.nextKilled, "OOM-killed first")];
}

function answered({ growth, fix, noFix }: Answer): (readonly [string, string])[] {
  const edit = fix?.edit;
  const where = edit?.target ? ` in ${edit.target}` : "";
  const notes: (readonly [string, string])[] = [];
  if (growth) notes.push(["Who acts first", growth.text]);
  const change = edit?.remedy?.change ?? edit?.change;
  const costs = edit?.remedy?.costs ?? [];
  const cost = costs.length > 0 ? ` Cost: ${costs.join("; ")}.` : "";
  if (edit) notes.push(["Safest fix", `${change}${where}. ${edit.then ?? ""}${cost}`.trim()]);
  else if (noFix) notes.push(["Safest fix", noFix]);
  return notes;
}
