// The page of `podqos blast`: what each pod would take down if it leaked, the most dangerous first.

import { h } from "./dom";
import { bytes, CAUSES, count, plural, seconds } from "./format";
import { breakable, card, header, NONE, table, tile, type Column } from "./frame";
import { icon } from "./kills";
import type { Blast, BlastRadius, Death } from "./schema";

const MOST = 200;
/** Of more victims than these the others are told when asked for. */
const FEW = 5;

/** Show at most so many leaks one by one; `all` says what has the others. */
export function showBlast(radius: BlastRadius, most = MOST, all = "use -o csv to see all"): HTMLElement[] {
  const harmful = radius.leaks.filter((leak) => leak.others.length > 0);
  const pods = new Set(harmful.map((leak) => `${leak.node} ${leak.pod}`)).size;
  const rates = `${bytes(radius.slowBytesPerSecond)}/s (slow) and ${bytes(radius.fastBytesPerSecond)}/s (fast)`;
  const shown = harmful.slice(0, most);
  const more = harmful.length - shown.length;
  const rest = `${more > 0 ? `${plural(more, "more leak")}: ${all}. ` : ""}${count(radius.pods - pods)} of ${plural(radius.pods, "pod")} ${radius.pods - pods === 1 ? "affects" : "affect"} no other pod.`;
  const assumed = radius.assumptions.map((each) => h("li", {}, `${each.what}: ${each.value} (set it with ${each.stateWith})`));
  const parts = [
    ...(radius.evictedBefore.length > 0 ? [evictedBefore(radius.evictedBefore)] : []),
    card("leaks", shown.length > 0 ? "The most dangerous pods" : "Leaks", "wide", ...(shown.length > 0 ? [leaks(radius, shown)] : []), h("p", { class: "quiet" }, rest)),
    ...(assumed.length > 0 ? [card("assumed", "Assumed", "wide", h("ul", { class: "reasons" }, ...assumed))] : []),
    h("footer", { class: "quiet" }, "Each leak is simulated on its node alone, from its current state until the leaking pod is itself killed or evicted. Keys: t toggles dark mode."),
  ];
  return [
    header({
      title: "Blast radius",
      facts: [plural(radius.nodes, "node"), plural(radius.pods, "pod"), `leaks of ${rates}`],
      description: "If a pod leaks memory: which other pods on its node are killed or evicted, in what order, how soon, and why.",
      headline: headline(radius, harmful, pods),
      tiles: tiles(radius, harmful, pods),
    }),
    h("main", {}, ...parts),
  ];
}

function evictedBefore(gone: BlastRadius["evictedBefore"]): HTMLElement {
  const more = gone.length - MOST;
  const pods = gone.slice(0, MOST).map((each) => h("li", {}, breakable(each.pod), ` on ${each.node}`));
  const rest = more > 0 ? [h("li", {}, `${count(more)} more: use -o json to see all`)] : [];
  return card("evicted", "Evicted without any leak", "wide", h("ul", { class: "reasons" }, ...pods, ...rest), h("p", { class: "quiet" }, `Leaks start after ${gone.length === 1 ? "it is" : "they are"} gone.`));
}

function headline(radius: BlastRadius, harmful: readonly Blast[], pods: number): string {
  const [worst] = harmful;
  if (radius.leaks.length === 0) return "All pods are evicted even without a leak, so no pod is left to leak.";
  if (worst === undefined) return "No pod takes others down: every leaking pod is itself the first victim.";
  const first = worst.others[0] as Death;
  if (worst.container === "") return `System daemons that leak ${rate(worst)} take ${plural(taken(worst), "pod")} down, the first after ${seconds(first.afterSeconds)}.`;
  const [verb, it] = pods === 1 ? ["takes", "it leaks"] : ["take", "they leak"];
  const how = `${plural(taken(worst), "pod")} at ${rate(worst)}, the first after ${seconds(first.afterSeconds)}`;
  return `${count(pods)} of ${plural(radius.pods, "pod")} ${verb} others down when ${it}. The most dangerous is ${worst.pod}: ${how}.`;
}

function tiles(radius: BlastRadius, harmful: readonly Blast[], pods: number): HTMLElement[] {
  const dead = harmful.flatMap((leak) => leak.others.map((death) => ({ ...death, at: `${leak.node} ${death.pod}` })));
  const victims = (which: (death: Death) => boolean) => new Set(dead.filter(which).map((death) => death.at)).size;
  const critical = victims((death) => death.isCritical);
  const guaranteed = victims((death) => death.qosClass === "Guaranteed");
  const soonest = harmful.toSorted((one, other) => (one.others[0]?.afterSeconds ?? 0) - (other.others[0]?.afterSeconds ?? 0))[0];
  const endless = radius.leaks.filter((leak) => leak.end === null).length;
  return [
    tile(`${count(pods)}/${count(radius.pods)}`, "pods take others down", "if they leak", pods > 0 ? "kernel" : ""),
    tile(count(victims(() => true)), victims(() => true) === 1 ? "pod can be taken down" : "pods can be taken down", "by another pod's leak"),
    tile(count(critical), "critical victims", "system pods", critical > 0 ? "kernel" : ""),
    tile(count(guaranteed), "Guaranteed victims", "", guaranteed > 0 ? "kernel" : ""),
    soonest === undefined ? tile("–", "until the first victim") : tile(seconds(soonest.others[0]?.afterSeconds ?? 0), "until the first victim", `${soonest.pod} at ${rate(soonest)}`),
    ...(endless > 0 ? [tile(count(endless), endless === 1 ? "leak never ends" : "leaks never end", "nothing stops them")] : []),
  ];
}

function leaks(radius: BlastRadius, shown: readonly Blast[]): HTMLElement {
  const most = Math.max(...shown.map(taken));
  const columns: Column<Blast>[] = [
    { name: "Leaking pod", cell: (leak) => h("div", {}, breakable(leak.pod), h("small", { class: "quiet" }, radius.nodes > 1 ? `on ${leak.node}, ` : "", `priority ${count(leak.priority)}`)) },
    { name: "Class", cell: (leak) => (leak.qosClass === null ? NONE : h("span", { class: `chip ${leak.qosClass}` }, leak.qosClass)) },
    { name: "Leak", cell: rate, number: true },
    { name: "Takes down", cell: (leak) => h("span", { class: "amount" }, h("i", { style: `width:${(taken(leak) / most) * 56}px` }), count(taken(leak))), number: true },
    { name: "Victims, in order", cell: (leak) => victims(together(leak.others)) },
    { name: "Leak ends", cell: ends },
  ];
  return table(columns, shown);
}

function victims(deaths: readonly Deaths[]): HTMLElement {
  const few = deaths.length <= FEW + 1 ? deaths : deaths.slice(0, FEW);
  const first = h("ol", { class: "deaths" }, ...few.map(death));
  if (few === deaths) return first;
  const rest = h("ol", { class: "deaths", start: FEW + 1 });
  // Written when it is opened: all of them are thousands.
  const more = h("details", { toggle: () => rest.childElementCount > 0 || rest.append(...deaths.slice(FEW).map(death)) }, h("summary", {}, `${count(deaths.length - FEW)} more`), rest);
  return h("div", {}, first, more);
}

interface Deaths {
  first: Death;
  times: number;
}

/** Deaths of the same pod for the same reason, one after the other, as one. */
function together(deaths: readonly Death[]): Deaths[] {
  const groups: Deaths[] = [];
  for (const each of deaths) {
    const last = groups.at(-1);
    if (last !== undefined && last.first.pod === each.pod && last.first.by === each.by && last.first.cause === each.cause) last.times++;
    else groups.push({ first: each, times: 1 });
  }
  return groups;
}

function death({ first, times }: Deaths): HTMLElement {
  const how = first.by === "kernel" ? "killed" : "evicted";
  const often = times > 1 ? `, ${times} times from ` : " after ";
  return h(
    "li",
    {},
    icon(first.by),
    h(
      "div",
      {},
      h("b", {}, breakable(first.pod)),
      " ",
      first.isCritical ? h("span", { class: "alarm" }, "critical") : h("span", { class: `chip ${first.qosClass}` }, first.qosClass),
      h("small", { class: "quiet" }, `${how}${often}${seconds(first.afterSeconds)}: ${CAUSES[first.cause] ?? `${first.cause} below its threshold`}`),
    ),
  );
}

function ends(leak: Blast): HTMLElement {
  if (leak.end === null) return h("span", {}, "never");
  return h("span", { class: "end" }, icon(leak.end.by), `${leak.end.by === "kernel" ? "killed" : "evicted"} after ${seconds(leak.end.afterSeconds)}`);
}

function taken(leak: Blast): number {
  return new Set(leak.others.map((death) => death.pod)).size;
}

function rate(leak: Blast): string {
  return `${bytes(leak.rateBytesPerSecond)}/s`;
}
