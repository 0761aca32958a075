// Both kill orders at the cursor, side by side; lines join a pod's two places.

import { h, s } from "./dom";
import { bytes, count, plural, signed, time } from "./format";
import { nameOf } from "./run";
import type { EvictionRank, KernelRank, OrdersView, PodView, RunView } from "./schema";
import { indexAt } from "./scale";
import type { State } from "./state";

const MOST = 12;
const BRIDGE = 46;

export function ordersView(state: State, element: HTMLElement): void {
  const draw = () => {
    const orders = ordersAt(state);
    element.replaceChildren(...(orders === null ? [h("p", { class: "quiet" }, "No kill orders were recorded for this node.")] : content(state, orders)));
    bridge(state.run, element);
    highlight();
  };
  const highlight = () => {
    const { pod } = state.now;
    element.classList.toggle("focused", pod !== null);
    for (const each of element.querySelectorAll<HTMLElement>("[data-pod]")) each.classList.toggle("focus", each.dataset["pod"] === String(pod));
  };
  state.subscribe((changed) => {
    if (changed.has("timeUs") || changed.has("node")) draw();
    else if (changed.has("pod")) highlight();
  });
  new ResizeObserver(() => bridge(state.run, element)).observe(element);
  draw();
}

/** The orders at the cursor: the last recorded before it. At a kill, those that led to it. */
function ordersAt(state: State): OrdersView | null {
  const { node, timeUs, kill } = state.now;
  const times = node.orders.map((each) => each.timeUs);
  let index = indexAt(times, timeUs);
  if (kill !== null && kill.timeUs === timeUs) {
    // Of the moments at this time the first is the one before anybody died.
    while (index > 0 && times[index - 1] === timeUs) index--;
  }
  return node.orders[Math.max(0, index)] ?? null;
}

function content(state: State, orders: OrdersView): HTMLElement[] {
  const { run } = state;
  const kernel = firstOfPods(orders.kernel);
  const rows = Math.min(MOST, orders.kubelet.length);
  const more = orders.kubelet.length - rows;
  const verdict = orders.reversedPairs === 0 ? "Both orders agree" : `They disagree about ${plural(orders.reversedPairs, "pair")} of pods`;
  const aside = crossings(orders.kubelet, kernel) > orders.reversedPairs ? "; other crossing lines are ties in one of the orders." : ".";
  return [
    h(
      "p",
      { class: "moment" },
      h("strong", { class: "when" }, time(orders.timeUs)),
      ` · ${bytes(orders.availableBytes)} available · ${orders.kernelLeftBytes > 0 ? bytes(orders.kernelLeftBytes) : "no"} headroom before an OOM kill`,
    ),
    h(
      "div",
      { class: "orders" },
      h("h3", { class: "kubelet" }, "kubelet evicts"),
      h("span"),
      h("h3", { class: "kernel" }, "kernel kills"),
      h("ol", { class: "order", "aria-label": "The order in which the kubelet would evict" }, ...orders.kubelet.slice(0, rows).map((rank, place) => evictionRow(state, run.pods[rank.pod], rank, place))),
      s("svg", { class: "bridge", width: BRIDGE, "aria-hidden": "true" }),
      h("ol", { class: "order", "aria-label": "The order in which the kernel would kill" }, ...kernel.slice(0, rows).map((rank, place) => kernelRow(state, run.pods[rank.pod], rank, place))),
    ),
    h("p", { class: "quiet" }, more > 0 ? `${verdict}${aside} ${plural(more, "more pod")} not shown.` : `${verdict}${aside}`),
  ];
}

/** Of each pod the container that would go first. */
function firstOfPods(kernel: readonly KernelRank[]): KernelRank[] {
  const seen = new Set<number>();
  return kernel.filter((rank) => !seen.has(rank.pod) && seen.add(rank.pod));
}

function crossings(kubelet: readonly EvictionRank[], kernel: readonly KernelRank[]): number {
  const places = kubelet.map((rank) => kernel.findIndex((each) => each.pod === rank.pod));
  return places.reduce((sum, place, index) => sum + places.slice(index + 1).filter((other) => other < place).length, 0);
}

function evictionRow(state: State, pod: PodView | undefined, rank: EvictionRank, place: number): HTMLElement {
  const usage = rank.usage === null ? "no statistics" : bytes(rank.usage);
  const requested = rank.request > 0 ? `${usage} of ${bytes(rank.request)}` : `${usage}, no request`;
  const figures = rank.spared === null ? `${requested}${rank.overRequest && rank.request > 0 ? " (over)" : ""}` : `never: ${rank.spared}`;
  return row(state, pod, rank.pod, place, figures, `priority ${count(rank.priority)}`, rank.reason);
}

function kernelRow(state: State, pod: PodView | undefined, rank: KernelRank, place: number): HTMLElement {
  const figures = `badness ${bytes(rank.badnessBytes)}`;
  return row(state, pod, rank.pod, place, figures, `${bytes(rank.usedBytes)}, adj ${signed(rank.oomScoreAdj)}`, rank.reason);
}

function row(state: State, pod: PodView | undefined, index: number, place: number, ...lines: [string, string, string]): HTMLElement {
  const [figures, more, reason] = lines;
  const title = `${pod?.key ?? "?"} (${pod?.qosClass ?? "?"})${reason ? `: before the next one: ${reason}` : ""}`;
  return h(
    "li",
    {
      class: `rank ${pod?.qosClass ?? ""}`,
      "data-pod": index,
      title,
      style: `--colour:${pod?.colour ?? "gray"}`,
      pointerenter: () => state.change({ pod: index }),
      pointerleave: () => state.change({ pod: null }),
    },
    h("b", {}, String(place + 1)),
    h("span", { class: "who" }, nameOf(state.run, pod?.key ?? "?")),
    h("span", { class: "figures" }, figures),
    h("span", { class: "figures" }, more),
  );
}

/** Join each pod's two places; rows are as high as their names need. */
function bridge(run: RunView, element: HTMLElement): void {
  const svg = element.querySelector(".bridge");
  if (svg === null) return;
  const [kubelet, kernel] = [...element.querySelectorAll<HTMLElement>(".order")].map((order) => [...order.querySelectorAll<HTMLElement>(".rank")]);
  const middle = (row: HTMLElement) => row.offsetTop - (row.parentElement?.offsetTop ?? 0) + row.offsetHeight / 2;
  svg.setAttribute("height", String(Math.max(0, ...[...(kubelet ?? []), ...(kernel ?? [])].map((row) => middle(row) + row.offsetHeight / 2))));
  svg.replaceChildren(
    ...(kubelet ?? []).flatMap((row) => {
      const pod = Number(row.dataset["pod"]);
      const other = kernel?.find((each) => each.dataset["pod"] === row.dataset["pod"]);
      if (other === undefined) return [];
      const [y1, y2] = [middle(row), middle(other)];
      return s("path", { "data-pod": pod, d: `M0 ${y1}C${BRIDGE / 2} ${y1} ${BRIDGE / 2} ${y2} ${BRIDGE} ${y2}`, stroke: run.pods[pod]?.colour ?? "gray" });
    }),
  );
}
