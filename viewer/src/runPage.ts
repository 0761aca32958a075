// The page of a run: puts the views together and listens to the keyboard.

import { Charts } from "./charts";
import { h, s } from "./dom";
import { count, time, victims } from "./format";
import { card, header, isTyping } from "./frame";
import { killsView } from "./kills";
import { ordersView } from "./orders";
import { leftOut } from "./panels";
import { linear } from "./scale";
import type { RunView } from "./schema";
import { State } from "./state";
import { cpuOf, journalView, services, tiles, workloads } from "./summary";

const CLASSES = ["Guaranteed", "Burstable", "BestEffort"] as const;
const BAR = 110;

/** Show a run; its keys are listened to until `shown` is aborted. */
export function showRun(run: RunView, shown?: AbortSignal): HTMLElement[] {
  const node = run.nodes.find((each) => run.kills.some((kill) => kill.node === each.name)) ?? run.nodes[0];
  const heading = {
    title: run.name,
    facts: [time(run.endUs, 1e6), `seed ${run.seed}`, `Kubernetes ${run.kubernetesVersion}`, `${run.policy} ranking`],
    description: run.description,
    headline: run.headline,
    tiles: tiles(run.summary),
  };
  if (node === undefined) return [header(heading), h("main", {}, card("workloads", "Workloads", "wide", workloads(run)))];
  const state = new State(run, node);
  listen(state, shown);
  return [header({ ...heading, tools: [nodeSelector(state)] }), page(state, shown)];
}

function nodeSelector(state: State): HTMLElement | null {
  const { run } = state;
  if (run.nodes.length < 2) return null;
  const options = run.nodes.map((node, index) => {
    const found = victims(run.kills.filter((kill) => kill.node === node.name).map((kill) => kill.by));
    return h("option", { value: index, selected: node === state.now.node }, found ? `${node.name} (${found})` : node.name);
  });
  const select = h("select", { id: "node" }, ...options);
  select.addEventListener("change", () => {
    const node = run.nodes[Number(select.value)];
    if (node !== undefined) state.showNode(node);
  });
  const left = run.summary.nodes - run.nodes.length;
  return h("label", {}, "Node ", select, left > 0 ? h("span", { class: "quiet" }, ` and ${count(left)} more in the summary`) : null);
}

function page(state: State, shown?: AbortSignal): HTMLElement {
  const charts = h("div", { class: "charts" });
  const out = h("p", { class: "quiet out" });
  const orders = h("div", { "aria-live": "polite" });
  const kills = h("section", { class: "card victims-list", "aria-labelledby": "kills" });
  const journal = h("div");
  const answering = services(state.run);
  const slowed = cpuOf(state.run);
  const element = h(
    "main",
    {},
    h(
      "div",
      { class: "column" },
      h("section", { class: "card picture", "aria-label": "Charts" }, h("div", { class: "over" }, legend(state), span(state)), charts, slider(state, shown), out),
      card("workloads", "Workloads", "workloads", workloads(state.run)),
      slowed === null ? null : card("cpu", "CPU", "workloads", slowed),
      answering === null ? null : card("services", "Services (a model)", "workloads", answering),
      card("journal", "Journal", "journal-card", journal),
    ),
    h("aside", { class: "column" }, kills, card("orders", "Eviction order and OOM kill order", "next", orders)),
    h("footer", { class: "quiet" }, "Keys: p play or pause · ← → move the cursor (Shift: further) · j k next and previous victim · z zoom to the victims or show all · t toggle dark mode · drag to zoom, double-click to reset."),
  );
  new Charts(state, charts);
  leftOut(state, out);
  ordersView(state, orders);
  killsView(state, kills);
  journalView(state, journal);
  return element;
}

function legend(state: State): HTMLElement {
  const found = new Set(state.run.kills.map((kill) => (kill.by === "kernel" ? "kernel" : "kubelet")));
  const cached = state.run.nodes.some((node) => node.pods.some((pod) => [...pod.activeFileBytes, ...pod.inactiveFileBytes].some(Boolean)));
  const classes = CLASSES.filter((name) => state.run.pods.some((pod) => pod.qosClass === name));
  return h(
    "p",
    { class: "legend" },
    ...classes.map((name) => h("span", { class: `chip ${name}` }, name)),
    found.has("kernel") ? h("span", { class: "sign kernel" }, "◆ killed by the kernel") : null,
    found.has("kubelet") ? h("span", { class: "sign kubelet" }, "● evicted by the kubelet") : null,
    cached ? h("span", { class: "quiet" }, "hatched: page cache") : null,
  );
}

/** Which part of the run is drawn: in words, and as a bar of the whole run. */
function span(state: State): HTMLElement {
  const range = h("span", { class: "range" });
  const bar = s("svg", { class: "overview", width: BAR, height: 12, "aria-hidden": "true" });
  const zoom = h("button", { type: "button", class: "tool", click: () => toggleZoom(state) }, "");
  const show = () => {
    const { fromUs, toUs } = state.now;
    const { endUs } = state.run;
    const all = fromUs === 0 && toUs === endUs;
    const step = Math.max(1000, (toUs - fromUs) / 40);
    const whole = time(endUs, 1e6);
    range.textContent = all ? `the whole run: ${whole}` : fromUs === 0 ? `first ${time(toUs, step)} of ${whole} shown` : `${time(fromUs, step)} – ${time(toUs, step)} of ${whole} shown`;
    range.classList.toggle("part", !all);
    const x = linear([0, endUs], [0, BAR]);
    bar.replaceChildren(
      s("rect", { class: "all", x: 0, y: 3, width: BAR, height: 6, rx: 3 }),
      s("rect", { class: "part", x: x(fromUs), y: 1, width: Math.max(4, x(toUs - fromUs)), height: 10, rx: 3 }),
      ...state.kills.map((kill) => s("line", { class: `mark ${kill.by}`, x1: x(kill.timeUs), x2: x(kill.timeUs), y1: 1, y2: 11 })),
    );
    bar.toggleAttribute("hidden", all);
    zoom.textContent = all ? "Zoom to the victims" : "Show all";
    zoom.hidden = all && state.kills.length === 0;
  };
  state.subscribe((changed) => {
    if (changed.has("fromUs") || changed.has("toUs") || changed.has("node")) show();
  });
  show();
  return h("div", { class: "span" }, range, bar, zoom);
}

/** The cursor as a slider, for keyboards and for those who cannot hit a line. */
function slider(state: State, shown?: AbortSignal): HTMLElement {
  const input = h("input", { type: "range", id: "cursor", min: 0, step: 1, "aria-label": "Time" });
  const show = () => {
    const { fromUs, toUs, timeUs } = state.now;
    input.min = String(Math.round(fromUs));
    input.max = String(Math.round(toUs));
    input.step = String(Math.max(1, Math.round((toUs - fromUs) / 1000)));
    input.value = String(timeUs);
    input.setAttribute("aria-valuetext", time(timeUs));
  };
  input.addEventListener("input", () => state.moveTo(Number(input.value)));
  state.subscribe(show);
  show();
  return h("div", { class: "scrubber" }, player(state, shown), input);
}

/** What is drawn passes by in this time. */
const PLAYED_MS = 20_000;
const FRAME_MS = 100;

/** Let the cursor walk from where it is to the end of what is drawn. */
function player(state: State, shown?: AbortSignal): HTMLElement {
  const button = h("button", { type: "button", class: "tool play", title: "Play or pause (p)", click: () => (timer === 0 ? play() : pause()) }, "▶ Play");
  let timer = 0;
  const pause = () => {
    clearInterval(timer);
    timer = 0;
    button.textContent = "▶ Play";
  };
  const play = () => {
    if (state.now.timeUs >= state.now.toUs) state.moveTo(state.now.fromUs);
    button.textContent = "⏸ Pause";
    let before = performance.now();
    timer = window.setInterval(() => {
      const { fromUs, toUs, timeUs } = state.now;
      const now = performance.now();
      state.moveTo(Math.min(toUs, timeUs + ((now - before) / PLAYED_MS) * (toUs - fromUs)));
      before = now;
      if (state.now.timeUs >= toUs || shown?.aborted) pause();
    }, FRAME_MS);
  };
  return button;
}

function toggleZoom(state: State): void {
  const { fromUs, toUs } = state.now;
  if (fromUs > 0 || toUs < state.run.endUs) {
    state.change({ fromUs: 0, toUs: state.run.endUs });
    return;
  }
  const times = state.kills.map((kill) => kill.timeUs);
  if (times.length === 0) return;
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const around = Math.max((last - first) * 0.4, state.run.endUs * 0.02, 1000);
  state.change({ fromUs: Math.max(0, first - around), toUs: Math.min(state.run.endUs, last + around) });
}

function listen(state: State, shown?: AbortSignal): void {
  const press = (event: KeyboardEvent) => {
    if (isTyping(event)) return;
    // The slider has its own ideas of these keys.
    if (event.target instanceof HTMLInputElement && /^(Arrow|Home|End)/.test(event.key)) return;
    const { fromUs, toUs, timeUs } = state.now;
    const step = ((toUs - fromUs) / 200) * (event.shiftKey ? 10 : 1);
    const keys: Record<string, () => void> = {
      ArrowLeft: () => state.moveTo(timeUs - step),
      ArrowRight: () => state.moveTo(timeUs + step),
      Home: () => state.moveTo(fromUs),
      End: () => state.moveTo(toUs),
      j: () => stepKill(state, 1),
      k: () => stepKill(state, -1),
      z: () => toggleZoom(state),
      p: () => document.querySelector<HTMLElement>(".play")?.click(),
    };
    const action = keys[event.key];
    if (action !== undefined) {
      event.preventDefault();
      action();
    }
  };
  document.addEventListener("keydown", press, shown === undefined ? {} : { signal: shown });
}

function stepKill(state: State, by: number): void {
  const kills = state.kills;
  const at = state.now.kill === null ? -1 : kills.indexOf(state.now.kill);
  const next = kills[Math.min(kills.length - 1, Math.max(0, at + by))];
  if (next !== undefined) state.showKill(next);
}
