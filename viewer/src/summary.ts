// How it ended: figures at the top, a row per workload, and the journal in words.

import { h } from "./dom";
import { count, duration, plural, time } from "./format";
import { icon } from "./kills";
import type { RunSummary, RunView } from "./schema";
import type { State } from "./state";

const MOST_EVENTS = 500;
const HOUSEKEEPING = new Set(["Placed", "Admitted", "Stopped", "CleanedUp", "Exited"]);

export function headline(summary: RunSummary): string {
  const kernel = summary.oomKills === 0 ? "The kernel killed no containers" : `The kernel killed ${plural(summary.oomKills, "container")}`;
  const kubelet = summary.evictions === 0 ? "the kubelet evicted no pods" : `the kubelet evicted ${plural(summary.evictions, "pod")}`;
  return `${kernel}, ${kubelet}; ${count(summary.untouched)} of ${plural(summary.pods, "pod")} were unaffected.`;
}

export function tiles(summary: RunSummary): HTMLElement {
  const by = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([name, number]) => `${number} ${name}`)
      .join(", ");
  const tile = (value: string, name: string, note: string, kind = "") => h("div", { class: `tile ${kind}` }, h("b", {}, value), h("span", {}, name), h("small", {}, note));
  const levels = by(summary.oomKillsByLevel);
  return h(
    "div",
    { class: "tiles" },
    tile(count(summary.oomKills), "killed by the kernel", levels ? `out of memory: ${levels}` : "", summary.oomKills ? "kernel" : ""),
    tile(count(summary.evictions), "evicted by the kubelet", by(summary.evictionsBySignal), summary.evictions ? "kubelet" : ""),
    tile(`${count(summary.untouched)}/${count(summary.pods)}`, "pods unaffected", plural(summary.nodes, "node")),
    tile(count(summary.restarts), "restarts", summary.rejections ? `${summary.rejections} rejected` : ""),
    tile(duration(summary.downtimeUs), "downtime", "of all pods together"),
  );
}

export function workloads(run: RunView): HTMLElement {
  const heads = ["Workload", "Class", "Priority", "Pods", "Unaffected", "OOM kills", "Evictions", "Restarts", "Downtime", "CPU short"];
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Workloads" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...heads.map((head, index) => h("th", { scope: "col", class: index > 1 ? "number" : "" }, head)))),
      h(
        "tbody",
        {},
        ...run.summary.workloads.map((each) =>
          h(
            "tr",
            { class: each.untouched < each.pods ? "hit" : "" },
            h("th", { scope: "row" }, each.workload),
            h("td", {}, h("span", { class: `chip ${each.qosClass}` }, each.qosClass)),
            ...[count(each.priority), count(each.pods), count(each.untouched), none(each.oomKills), none(each.evictions), none(each.restarts), duration(each.downtimeUs), duration(each.throttledUs)].map((text) =>
              h("td", { class: "number" }, text),
            ),
          ),
        ),
      ),
    ),
  );
}

function none(value: number): string {
  return value === 0 ? "–" : count(value);
}

export function journalView(state: State, element: HTMLElement): void {
  let all = false;
  const draw = () => {
    const own = state.run.events.filter((event) => event.node === state.now.node.name || event.node === "");
    const events = all ? own : own.filter((event) => !HOUSEKEEPING.has(event.kind));
    const shown = events.slice(0, MOST_EVENTS);
    const toggle = h("input", { type: "checkbox", change: () => ((all = !all), draw()) });
    toggle.checked = all;
    element.replaceChildren(
      h("label", { class: "quiet" }, toggle, " with housekeeping: placed, admitted, exited, stopped, cleaned up"),
      h(
        "ol",
        { class: "journal scroll tall", tabindex: 0, "aria-label": "Journal" },
        ...shown.map((event) =>
          h(
            "li",
            { class: event.kind },
            h("button", { type: "button", title: "Move the cursor here", click: () => state.moveTo(event.timeUs) }, time(event.timeUs)),
            event.kind === "OOMKilled" || event.kind === "Evicted" ? icon(event.by ?? "kubelet") : h("span", { class: "icon" }),
            h("span", {}, event.text),
          ),
        ),
      ),
      ...(events.length > shown.length ? [h("p", { class: "quiet" }, `${count(events.length - shown.length)} more; -o jsonl has them all.`)] : []),
    );
  };
  state.subscribe((changed) => {
    if (changed.has("node")) draw();
  });
  draw();
}
