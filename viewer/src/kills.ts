// The victims: killed or evicted, why, and what would have saved the pod. One entry of the list is open.

import { h, s } from "./dom";
import { count, fate, time } from "./format";
import { glyph, shape } from "./marks";
import { nameOf } from "./run";
import type { Kill, Saving } from "./schema";
import type { State } from "./state";

/** More than these scroll. */
const FEW = 8;

export function killsView(state: State, element: HTMLElement): void {
  const draw = () => {
    const kills = state.kills;
    const killed = kills.some((kill) => kill.by === "kernel");
    const evicted = kills.some((kill) => kill.by !== "kernel");
    const title = h("h2", { id: "kills" }, killed === evicted ? "Killed and evicted" : killed ? "Killed" : "Evicted");
    if (kills.length === 0) {
      element.replaceChildren(title, h("p", { class: "quiet" }, "No OOM kills and no evictions on this node."));
      return;
    }
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset["kill"] : undefined;
    element.replaceChildren(
      title,
      h("ol", { class: `kills${kills.length > FEW ? " many" : ""}` }, ...kills.map((kill, index) => entry(state, kill, index))),
      ...(state.untold > 0 ? [h("p", { class: "quiet" }, `Only the first ${count(kills.length)} are marked; ${count(state.untold)} more are in the journal.`)] : []),
    );
    if (focused !== undefined) element.querySelector<HTMLElement>(`[data-kill="${focused}"]`)?.focus();
  };
  state.subscribe((changed) => {
    if (changed.has("kill") || changed.has("node")) draw();
  });
  draw();
}

/** The sign of who did it; with a number, as in the picture. */
export function icon(by: string, number = ""): SVGSVGElement {
  return s("svg", { class: `icon mark ${by}`, width: 24, height: 24, viewBox: "0 0 24 24", "aria-hidden": "true" }, shape(by, 12, 12, number ? 10 : 7), glyph(number, 12, 12));
}

function entry(state: State, kill: Kill, index: number): HTMLElement {
  const open = state.now.kill === kill;
  const id = `kill-${index}`;
  return h(
    "li",
    { class: `kill ${kill.by}${open ? " open" : ""}` },
    h(
      "button",
      { type: "button", "aria-expanded": open ? "true" : "false", "aria-controls": id, "data-kill": index, click: () => (open ? state.change({ kill: null }) : state.showKill(kill)) },
      icon(kill.by, String(index + 1)),
      h("span", { class: "what" }, h("b", {}, nameOf(state.run, kill.pod)), ` ${fate(kill.by)}`, open ? null : h("span", { class: "quiet" }, kill.cause)),
      h("time", {}, time(kill.timeUs)),
    ),
    open ? details(kill, id) : null,
  );
}

function details(kill: Kill, id: string): HTMLElement {
  return h(
    "div",
    { class: "details", id },
    h("ul", { class: "reasons" }, ...kill.reasons.map((reason) => h("li", {}, reason))),
    ...savings("What would have saved it", kill.savings.filter((each) => each.saves)),
    ...savings("What would not have helped", kill.savings.filter((each) => !each.saves)),
  );
}

function savings(title: string, found: readonly Saving[]): HTMLElement[] {
  return found.length === 0 ? [] : [h("h4", {}, title), h("ul", { class: "savings" }, ...found.map(saving))];
}

function saving(each: Saving): HTMLElement {
  return h(
    "li",
    { class: each.saves ? "saves" : "not" },
    h("b", {}, each.change),
    h("span", {}, ` ${each.effect}`),
    each.saves && each.costs.length > 0 ? h("span", { class: "quiet" }, `; costs ${each.costs.join("; ")}`) : null,
    each.edits.length > 0 ? h("pre", {}, each.edits.join("\n")) : null,
  );
}
