// The picture of a node's run: panels over one axis of time, with the victims, the cursor and zooming.

import { useMemo, useState } from "preact/hooks";
import { time } from "../../format";
import type { Kill, Panel } from "../../schema";
import { kept } from "../ui";
import { useWidth } from "../windowed";
import { Marks, type Extent } from "./marks";
import { Body, Heading, headOf } from "./panels";
import { heightOf, plotOf, type Plot } from "./plot";
import { timeTicks } from "./scale";
import { useLooking, type State } from "./state";
import { textWidth } from "./text";
import { railOf } from "./victims";

/** The height of the axis of time, and how far apart its ticks are, about. */
const AXIS = 26;
const TICK = 110;
/** A shorter drag is a click. */
const CLICK = 6;

let pictures = 0;

export function Picture({ state }: { state: State }) {
  const [place, width] = useWidth("run");
  const { node, fromUs, toUs, all } = useLooking(state, "node", "fromUs", "toUs", "all");
  const plot = useMemo(
    () => (width > 0 ? plotOf(state.run, { node, fromUs, toUs }, width) : null),
    [state, node, fromUs, toUs, width],
  );
  return (
    <div class="charts" ref={place}>
      {plot === null ? null : <Drawn state={state} plot={plot} all={all} width={width} />}
    </div>
  );
}

interface Placed {
  panel: Panel;
  top: number;
  head: number;
  extent: Extent;
}

/** The panels below a height, each with its place. */
function placed(plot: Plot, start: number, all: boolean): Placed[] {
  let top = start;
  return plot.picture.panels
    .filter((panel) => all || !panel.isHidden)
    .map((panel) => {
      const head = headOf(panel, plot);
      const extent: Extent = [top + head, top + head + heightOf(panel, plot)];
      const found = { panel, top, head, extent };
      top = extent[1] + plot.picture.measures.gap;
      return found;
    });
}

interface DrawnProps {
  state: State;
  plot: Plot;
  all: boolean;
  width: number;
}

function Drawn({ state, plot, all, width }: DrawnProps) {
  const [id] = useState(() => `-${++pictures}`);
  const { kill, pod } = useLooking(state, "kill", "pod");
  const rail = useMemo(() => railOf(plot), [plot]);
  const panels = useMemo(() => placed(plot, rail.height, all), [plot, rail, all]);
  const extents = useMemo(() => panels.map(({ extent }) => extent), [panels]);
  const ticks = useMemo(() => timeTicks(plot.fromUs, plot.toUs, (plot.right - plot.left) / TICK), [plot]);
  const drag = useDrag(state, plot);
  const bottom = extents.at(-1)?.[1] ?? 0;
  const height = bottom + plot.picture.measures.gap + AXIS;
  const [choose] = useState(() => (chosen: Kill) => state.showKill(chosen));
  const titles = panels.map(({ panel }) => panel.title).join(", ");
  return (
    <svg
      class={pod === null ? "" : "focused"}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="group"
      aria-label={`${titles} of ${plot.node.name} over time`}
      {...drag.listeners}
    >
      <Defs plot={plot} height={height} id={id} />
      <rect class="backdrop" x={plot.left} y={0} width={plot.right - plot.left} height={height} />
      {panels.map(({ panel, top, head }) => (
        <g key={panel.title} class={`panel ${panel.name}`} transform={`translate(0 ${top})`}>
          <Heading plot={plot} panel={panel} />
          <g transform={`translate(0 ${head})`}>
            <Body plot={plot} panel={panel} ticks={ticks.at} focus={pod} id={id} />
          </g>
        </g>
      ))}
      <Axis state={state} plot={plot} top={bottom} ticks={ticks} />
      <Marks plot={plot} rail={rail} extents={extents} selected={kill} choose={choose} />
      <Cursor state={state} plot={plot} extents={extents} />
      {drag.box === null ? null : (
        <rect
          class="brush"
          x={drag.box[0]}
          width={drag.box[1] - drag.box[0]}
          y={extents[0]?.[0] ?? 0}
          height={bottom - (extents[0]?.[0] ?? 0)}
        />
      )}
    </svg>
  );
}

interface CursorPlace {
  x: number;
  left: number;
  width: number;
  words: string;
}

/** Where the words of the cursor are, and how wide; null if it is not in view. */
function cursorAt(plot: Plot, timeUs: number): CursorPlace | null {
  if (timeUs < plot.fromUs || timeUs > plot.toUs) return null;
  const words = time(timeUs, (plot.toUs - plot.fromUs) / 1000);
  const width = textWidth(words, { size: 11.5, weight: 600 }) + 14;
  const x = plot.x(timeUs);
  return { x, left: Math.min(plot.right - width, Math.max(plot.left, x - width / 2)), width, words };
}

interface AxisProps {
  state: State;
  plot: Plot;
  top: number;
  ticks: { step: number; at: readonly number[] };
}

/** The times below the panels; those that the cursor covers are hidden. */
const Axis = kept(function Axis({ state, plot, top, ticks }: AxisProps) {
  const cursor = cursorAt(plot, useLooking(state, "timeUs").timeUs);
  const shown = useMemo(() => {
    let free = -Infinity;
    return ticks.at.flatMap((tick) => {
      const words = time(tick, ticks.step);
      const half = textWidth(words) / 2;
      const x = Math.min(plot.x(tick), plot.right + 10 - half);
      if (x - half < free) return [];
      free = x + half + 8;
      return [{ words, x, half }];
    });
  }, [plot, ticks]);
  const visibility = (x: number, half: number) => {
    if (cursor === null) return undefined;
    const [from, to] = [cursor.left - 4, cursor.left + cursor.width + 4];
    return x + half > from && x - half < to ? "hidden" : undefined;
  };
  return (
    <g class="axis" transform={`translate(0 ${top + 4})`}>
      {shown.map(({ words, x, half }, index) => (
        <text key={index} x={x} y={14} text-anchor="middle" visibility={visibility(x, half)}>
          {words}
        </text>
      ))}
    </g>
  );
});

interface CursorProps {
  state: State;
  plot: Plot;
  extents: readonly Extent[];
}

const Cursor = kept(function Cursor({ state, plot, extents }: CursorProps) {
  const cursor = cursorAt(plot, useLooking(state, "timeUs").timeUs);
  const top = (extents.at(-1)?.[1] ?? 0) + 2;
  if (cursor === null) return <g class="cursor" />;
  const { x, left, width, words } = cursor;
  return (
    <g class="cursor">
      <path d={extents.map(([from, to]) => `M${x} ${from}V${to}`).join("")} />
      <rect x={left} y={top} width={width} height={20} rx={4} />
      <text x={left + width / 2} y={top + 14}>
        {words}
      </text>
    </g>
  );
});

/** A click moves the cursor, a drag zooms in, a double click shows all; a pod pointed at stands out. */
function useDrag(state: State, plot: Plot) {
  const [drag, setDrag] = useState<{ start: number; end: number } | null>(null);
  const at = (event: MouseEvent) => {
    const x = event.clientX - (event.currentTarget as Element).getBoundingClientRect().left;
    return Math.min(plot.right, Math.max(plot.left, x));
  };
  const listeners = {
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0 || (event.target as Element).closest("[role=button]")) return;
      setDrag({ start: at(event), end: at(event) });
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      if (drag !== null) {
        setDrag({ start: drag.start, end: at(event) });
        return;
      }
      const over = (event.target as Element).closest<SVGElement>("[data-pod]");
      state.change({ pod: over ? Number(over.dataset["pod"]) : null });
    },
    onPointerUp: (event: PointerEvent) => {
      if (drag === null) return;
      setDrag(null);
      const { invert } = plot.x;
      const [from, to] = [Math.min(drag.start, at(event)), Math.max(drag.start, at(event))];
      if (to - from < CLICK) state.moveTo(invert(to));
      else state.change({ fromUs: Math.max(0, invert(from)), toUs: Math.min(plot.run.endUs, invert(to)) });
    },
    onPointerLeave: () => state.change({ pod: null }),
    onDblClick: () => state.change({ fromUs: 0, toUs: plot.run.endUs }),
  };
  const ends = drag === null ? [] : [drag.start, drag.end];
  const box = drag === null ? null : ([Math.min(...ends), Math.max(...ends)] as const);
  return { listeners, box };
}

function Defs({ plot, height, id }: { plot: Plot; height: number; id: string }) {
  return (
    <defs>
      <clipPath id={`plot${id}`}>
        <rect x={plot.left} y={-2} width={Math.max(0, plot.right - plot.left)} height={height} />
      </clipPath>
      <Hatch id={`cache${id}`} spacing={6} kind="hatch-cache" />
      <Hatch id={`active${id}`} spacing={6} kind="hatch-active" />
      <Hatch id={`denied${id}`} spacing={5} kind="hatch-throttled" />
    </defs>
  );
}

function Hatch({ id, spacing, kind }: { id: string; spacing: number; kind: string }) {
  const size = { width: spacing, height: spacing };
  return (
    <pattern id={id} {...size} patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <line class={kind} x1={0} x2={0} y1={0} y2={spacing} />
    </pattern>
  );
}
