// The page of a run: puts the views together and listens to the keyboard.

import "./style.css";
import { Charts } from "./charts";
import { h } from "./dom";
import { count, plural, time } from "./format";
import { killsView } from "./kills";
import { ordersView } from "./orders";
import { readRun } from "./run";
import { State } from "./state";
import { headline, journalView, tiles, workloads } from "./summary";

const CLASSES = ["Guaranteed", "Burstable", "BestEffort"] as const;

function start(): void {
  const app = document.getElementById("app");
  if (app === null) return;
  const run = readRun();
  const node = run?.nodes.find((each) => run.kills.some((kill) => kill.node === each.name)) ?? run?.nodes[0];
  if (run === null || run === undefined || node === undefined) {
    app.replaceChildren(h("main", { class: "bare" }, h("h1", {}, "podqos"), h("p", {}, "This page shows a run. Make one with: podqos simulate SCENARIO --html FILE")));
    return;
  }
  document.title = `${run.name} – podqos`;
  const state = new State(run, node);
  app.replaceChildren(header(state), page(state));
  listen(state);
}

function header(state: State): HTMLElement {
  const { run } = state;
  const facts = [time(run.endUs, 1e6), `seed ${run.seed}`, `Kubernetes ${run.kubernetesVersion}`, `${run.policy} ranking`];
  return h(
    "header",
    {},
    h(
      "div",
      { class: "title" },
      h("h1", {}, run.name),
      h("p", { class: "facts" }, ...facts.map((fact) => h("span", {}, fact))),
      h("div", { class: "tools" }, nodeSelector(state), h("button", { type: "button", class: "tool", title: "Dark or light (t)", click: toggleTheme, "aria-label": "Dark or light" }, "◐")),
    ),
    run.description ? h("p", { class: "description" }, run.description) : null,
    h("p", { class: "headline" }, headline(run.summary)),
    tiles(run.summary),
  );
}

function nodeSelector(state: State): HTMLElement | null {
  const { run } = state;
  if (run.nodes.length < 2) return null;
  const options = run.nodes.map((node, index) => {
    const kills = run.kills.filter((kill) => kill.node === node.name).length;
    return h("option", { value: index, selected: node === state.now.node }, kills > 0 ? `${node.name} (${plural(kills, "kill")})` : node.name);
  });
  const select = h("select", { id: "node" }, ...options);
  select.addEventListener("change", () => {
    const node = run.nodes[Number(select.value)];
    if (node !== undefined) state.showNode(node);
  });
  const left = run.summary.nodes - run.nodes.length;
  return h("label", {}, "Node ", select, left > 0 ? h("span", { class: "quiet" }, ` and ${count(left)} more in the summary`) : null);
}

function page(state: State): HTMLElement {
  const charts = h("div", { class: "charts" });
  const orders = h("div", { "aria-live": "polite" });
  const kills = h("div");
  const journal = h("div");
  const element = h(
    "main",
    {},
    h(
      "div",
      { class: "column" },
      h("section", { class: "card picture", "aria-label": "Charts" }, legend(), charts, scrubber(state)),
      h("section", { class: "card", "aria-labelledby": "workloads" }, h("h2", { id: "workloads" }, "Workloads"), workloads(state.run)),
    ),
    h(
      "aside",
      { class: "column" },
      h("section", { class: "card", "aria-labelledby": "kills" }, h("h2", { id: "kills" }, "Kills"), kills),
      h("section", { class: "card", "aria-labelledby": "orders" }, h("h2", { id: "orders" }, "Kill orders"), orders),
    ),
    h("section", { class: "card wide", "aria-labelledby": "journal" }, h("h2", { id: "journal" }, "Journal"), journal),
    h("footer", { class: "quiet" }, "Keys: ← → move the cursor (with Shift further) · j k next and previous kill · z all or around the kills · t dark or light · drag to zoom, double-click for all."),
  );
  new Charts(state, charts);
  ordersView(state, orders);
  killsView(state, kills);
  journalView(state, journal);
  return element;
}

function legend(): HTMLElement {
  return h(
    "p",
    { class: "legend" },
    ...CLASSES.map((name) => h("span", { class: `chip ${name}` }, name)),
    h("span", { class: "sign kernel" }, "◆ killed by the kernel"),
    h("span", { class: "sign kubelet" }, "● evicted by the kubelet"),
    h("span", { class: "quiet" }, "hatched: page cache"),
  );
}

/** The cursor as a slider, for keyboards and for those who cannot hit a line. */
function scrubber(state: State): HTMLElement {
  const input = h("input", { type: "range", id: "cursor", min: 0, step: 1, "aria-label": "Time" });
  const range = h("span", { class: "range" });
  const zoom = h("button", { type: "button", class: "tool", click: () => toggleZoom(state) }, "");
  const show = () => {
    const { fromUs, toUs, timeUs } = state.now;
    const all = fromUs === 0 && toUs === state.run.endUs;
    input.min = String(Math.round(fromUs));
    input.max = String(Math.round(toUs));
    input.step = String(Math.max(1, Math.round((toUs - fromUs) / 1000)));
    input.value = String(timeUs);
    input.setAttribute("aria-valuetext", time(timeUs));
    range.textContent = all ? "the whole run" : `${time(fromUs, 1e5)} – ${time(toUs, 1e5)} of ${time(state.run.endUs, 1e6)}`;
    zoom.textContent = all ? "Zoom to the kills" : "Show all";
    zoom.hidden = all && state.kills.length === 0;
  };
  input.addEventListener("input", () => state.moveTo(Number(input.value)));
  state.subscribe(show);
  show();
  return h("div", { class: "scrubber" }, input, range, zoom);
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

function toggleTheme(): void {
  const root = document.documentElement;
  const dark = root.dataset["theme"] ? root.dataset["theme"] === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset["theme"] = dark ? "light" : "dark";
}

function listen(state: State): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLSelectElement) return;
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
      t: toggleTheme,
    };
    const action = keys[event.key];
    if (action !== undefined) {
      event.preventDefault();
      action();
    }
  });
}

function stepKill(state: State, by: number): void {
  const kills = state.kills;
  const at = state.now.kill === null ? -1 : kills.indexOf(state.now.kill);
  const next = kills[Math.min(kills.length - 1, Math.max(0, at + by))];
  if (next !== undefined) state.showKill(next);
}

start();
