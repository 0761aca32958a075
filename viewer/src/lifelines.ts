// When the node reported pressure, and when each pod ran.

import { s } from "./dom";
import { bare, time } from "./format";
import { isDark, type Panel, type Plot } from "./panels";
import { shape } from "./marks";

const ROW = 19;
const MOST = 40;

export function conditionsPanel(plot: Plot): Panel {
  const { node } = plot;
  const names = [...new Set(node.conditions.map((span) => span.condition))].sort();
  return {
    name: "conditions",
    title: "Conditions",
    note: names.length === 0 ? "the node never reported pressure" : "as the node reported them",
    height: names.length * ROW,
    draw(body) {
      names.forEach((name, row) => {
        body.append(s("text", { class: "absent", x: plot.left + 6, y: row * ROW + 12.5 }, name));
        for (const span of node.conditions.filter((each) => each.condition === name)) {
          const from = Math.max(plot.left, plot.x(span.startUs));
          const to = Math.min(plot.right, plot.x(span.endUs ?? plot.run.endUs));
          if (to <= plot.left || from >= plot.right) continue;
          body.append(
            s("rect", { class: "condition", x: from, y: row * ROW + 1, width: Math.max(2, to - from), height: ROW - 4, rx: 3 }, s("title", {}, `${name} from ${time(span.startUs)}`)),
            s("text", { class: "name on-condition", x: from + 6, y: row * ROW + 12.5 }, to - from > 110 ? name : ""),
          );
        }
      });
    },
  };
}

interface Span {
  from: number;
  to: number;
}

export function lifelinesPanel(plot: Plot): Panel {
  const { node, run } = plot;
  const rows = node.pods.slice(0, MOST);
  const hidden = node.pods.length - rows.length;
  return {
    name: "lifelines",
    title: "Pods",
    note: hidden > 0 ? `while they ran; ${hidden} more are not drawn` : "while they ran",
    height: rows.length * ROW,
    draw(body) {
      rows.forEach((series, row) => {
        const pod = run.pods[series.pod];
        if (pod === undefined) return;
        const top = row * ROW;
        const spans = running(plot, series.anonBytes);
        for (const span of spans) {
          const from = Math.max(plot.left, plot.x(span.from));
          const to = Math.min(plot.right, plot.x(span.to));
          if (to < plot.left || from > plot.right) continue;
          body.append(s("rect", { class: `life ${pod.qosClass}`, "data-pod": series.pod, x: from, y: top + 1, width: Math.max(1.5, to - from), height: ROW - 4, rx: 3, fill: pod.colour }));
        }
        const first = spans[0];
        const start = first === undefined ? plot.left : Math.max(plot.left, plot.x(first.from));
        const room = first === undefined ? 0 : Math.min(plot.right, plot.x(first.to)) - start;
        const text = `${bare(pod.key)}`;
        const inside = room > text.length * 6.6 + 14;
        body.append(
          s("text", { class: `name ${inside ? (isDark(pod.colour) ? "on-dark" : "on-light") : "outside"}`, "data-pod": series.pod, x: (inside ? start : start + Math.max(0, room) + 8) + 6, y: top + 12.5 }, text),
        );
        for (const kill of plot.state.kills) {
          if (kill.pod !== pod.key || kill.timeUs < plot.fromUs || kill.timeUs > plot.toUs) continue;
          body.append(s("g", { class: `mark small ${kill.by}` }, shape(kill.by, plot.x(kill.timeUs), top + ROW / 2 - 1, 5)));
        }
      });
    },
  };
}

/** Where a series has values. */
function running(plot: Plot, values: readonly (number | null)[]): Span[] {
  const times = plot.node.timesUs;
  const spans: Span[] = [];
  let from: number | null = null;
  values.forEach((value, index) => {
    const at = times[index] ?? 0;
    if (value !== null && from === null) from = at;
    if (value === null && from !== null) {
      spans.push({ from, to: at });
      from = null;
    }
  });
  if (from !== null) spans.push({ from, to: times.at(-1) ?? 0 });
  return spans;
}
