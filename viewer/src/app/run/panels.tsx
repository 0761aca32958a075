// The panels of a picture: charts with an axis, rows, and the kubelet's checks.

import { useMemo } from "preact/hooks";
import type { LineKind, Panel, Row } from "../../schema";
import { useLater } from "../frames";
import { kept } from "../ui";
import { stackOf } from "./bands";
import { curvePath } from "./curves";
import { heightOf, isDark, type Plot } from "./plot";
import { checksOf, endsOf, onScreen, placeFor, type Span } from "./rows";
import { upright } from "./scale";
import { Shape } from "./sign";
import { HEADING, NOTE, textWidth, wrapped } from "./text";

export interface PanelProps {
  plot: Plot;
  panel: Panel;
  /** The pod that is pointed at. */
  focus: number | null;
  /** What the ids of the picture end with. */
  id: string;
}

/** The fills of layers that are not about a pod. */
const FILLS: Readonly<Record<string, string>> = { system: "var(--system)", cache: "cache", denied: "denied" };
const LAYERS: Readonly<Record<string, string>> = { system: "system", cache: "cache", denied: "throttled" };

/** The note of a panel: behind its title, or in lines of its own. */
function noteOf({ title, note }: Panel, { left, right }: Plot): { isBehind: boolean; lines: string[] } {
  const room = right - left;
  if (textWidth(title, HEADING) + 8 + textWidth(note, NOTE) <= room) return { isBehind: true, lines: [note] };
  return { isBehind: false, lines: wrapped(note, room, NOTE) };
}

/** The height of a panel's title with its note. */
export function headOf(panel: Panel, plot: Plot): number {
  const { title, noteLine } = plot.picture.measures;
  const { isBehind, lines } = noteOf(panel, plot);
  return title + (isBehind ? 0 : noteLine * lines.length);
}

export const Heading = kept(function Heading({ plot, panel }: Pick<PanelProps, "plot" | "panel">) {
  const { isBehind, lines } = noteOf(panel, plot);
  return (
    <text class="title" x={plot.left} y={15}>
      {panel.title}
      {isBehind ? (
        <tspan class="note" dx={8}>
          {lines[0]}
        </tspan>
      ) : (
        lines.map((line, index) => (
          <tspan key={line} class="note" x={plot.left} y={15 + plot.picture.measures.noteLine * (index + 1)}>
            {line}
          </tspan>
        ))
      )}
    </text>
  );
});

interface BodyProps extends PanelProps {
  /** The times of the vertical lines. */
  ticks: readonly number[];
}

/** What is in a panel is drawn after its title, a panel or two with each frame: all take longer than one. */
export const Body = kept(function Body({ plot, panel, ticks, focus, id }: BodyProps) {
  const drawn = useLater(
    useMemo(() => ({ plot, panel, ticks }), [plot, panel, ticks]),
    ["beforeprint"],
  );
  const height = heightOf(drawn.panel, drawn.plot);
  return (
    <>
      {drawn.ticks.map((tick, index) => {
        const x = drawn.plot.x(tick);
        return <line key={index} class="grid" x1={x} x2={x} y1={0} y2={height} />;
      })}
      <Content plot={drawn.plot} panel={drawn.panel} focus={focus} id={id} />
    </>
  );
});

const Content = kept(function Content({ plot, panel, focus, id }: PanelProps) {
  const height = plot.picture.measures.row;
  if (panel.axis !== null) return <Chart plot={plot} panel={panel} focus={focus} id={id} />;
  if (panel.name === "checks") return <Checks plot={plot} panel={panel} />;
  return (
    <>
      {panel.rows.map((row, index) => (
        <Lasting key={row.label} plot={plot} row={row} top={index * height} focus={focus} />
      ))}
    </>
  );
});

const focused = (pod: number | null, focus: number | null) => (pod !== null && pod === focus ? " focus" : "");

function Chart({ plot, panel, focus, id }: PanelProps) {
  const drawn = useMemo(() => {
    const height = heightOf(panel, plot);
    const y = upright(panel.axis ?? { low: 0, high: 1, isLogarithmic: false, ticks: [] }, height);
    // Labels are placed for the full height.
    const labels = panel.labels.map((label) => ({ ...label, y: (label.y * height) / panel.height }));
    const curves = panel.curves.map((curve) => ({ curve, path: curvePath(plot, curve, y) }));
    return { height, y, labels, curves, stack: stackOf(plot, panel, y, labels) };
  }, [plot, panel]);
  const { left, right } = plot;
  const { y, height, stack } = drawn;
  const clip = `url(#plot${id})`;
  return (
    <>
      {panel.axis?.ticks.map(({ value, words }) => (
        <g key={value}>
          <line class="grid" x1={left} x2={right} y1={y(value)} y2={y(value)} />
          <text class="tick" x={left - 8} y={y(value) + 4}>
            {words}
          </text>
        </g>
      ))}
      <g clip-path={clip}>
        {stack.bands.map((band, index) => (
          <path
            key={index}
            class={bandClass(plot, band.kind, band.pod) + focused(band.pod, focus)}
            data-pod={band.pod ?? undefined}
            d={band.path}
            fill={band.fill ?? fillOf(band.kind, id)}
          />
        ))}
        {stack.bands.map(({ veil }, index) =>
          veil === null ? null : <path key={index} class="veil" d={veil} fill={`url(#active${id})`} />,
        )}
      </g>
      <g class="names">
        {stack.names.map(({ pod, text, x, y: at, kind }) => (
          <text
            key={text}
            class={`name ${kind}${focused(pod, focus)}`}
            data-pod={pod ?? undefined}
            x={x}
            y={at}
          >
            {text}
          </text>
        ))}
      </g>
      {panel.killingBelow === null ? null : (
        <rect
          class="killing"
          x={left}
          y={y(panel.killingBelow)}
          width={right - left}
          height={Math.max(0, height - y(panel.killingBelow))}
        />
      )}
      {panel.levels.map(({ kind, value }, index) => (
        <line key={index} class={levelClass(kind)} x1={left} x2={right} y1={y(value)} y2={y(value)} />
      ))}
      {drawn.curves.map(({ curve: { kind, colour }, path }, index) => (
        <path key={index} class={curveClass(kind)} d={path} stroke={colour ?? undefined} clip-path={clip} />
      ))}
      {drawn.labels.map((label) => (
        <text key={label.words} class={`label ${label.kind}`} x={right - 6} y={label.y}>
          {label.words}
        </text>
      ))}
    </>
  );
}

function bandClass({ run }: Plot, kind: string, pod: number | null): string {
  return pod === null ? (LAYERS[kind] ?? kind) : `band ${run.pods[pod]?.qosClass ?? ""}`;
}

function fillOf(kind: string, id: string): string {
  const fill = FILLS[kind] ?? kind;
  return fill.startsWith("var") ? fill : `url(#${fill}${id})`;
}

function levelClass(kind: LineKind): string {
  return kind === "capacity" ? kind : `threshold ${kind}`;
}

function curveClass(kind: LineKind): string {
  return kind === "pods" ? "threshold pods" : `series ${kind}`;
}

function Checks({ plot, panel }: Pick<PanelProps, "plot" | "panel">) {
  const height = heightOf(panel, plot);
  return (
    <>
      {plot.node.looks.map((span, index) => {
        const checks = checksOf(plot, span, height);
        if (checks === null) return null;
        if (typeof checks === "string") return <path key={index} class="checks" d={checks} />;
        return <Bar key={index} class="checks" span={checks} y={0} height={height} />;
      })}
    </>
  );
}

interface BarProps {
  class: string;
  span: Span;
  y: number;
  height: number;
  rounded?: boolean;
  pod?: number | null;
  fill?: string;
  title?: string;
}

function Bar({ class: kind, span, y, height, rounded, pod, fill, title }: BarProps) {
  const width = Math.max(1.5, span.to - span.from);
  const attributes = { class: kind, x: span.from, y, width, height, rx: rounded ? 3 : undefined, fill };
  return (
    <rect {...attributes} data-pod={pod ?? undefined}>
      {title === undefined ? null : <title>{title}</title>}
    </rect>
  );
}

/** A condition or a pod while it lasted. */
function Lasting({ plot, row, top, focus }: { plot: Plot; row: Row; top: number; focus: number | null }) {
  const { spans, short, ends, name } = useMemo(() => {
    const onRow = onScreen(plot, row.spans);
    const kills = endsOf(plot, row);
    const place = placeFor(
      plot,
      row.label,
      onRow,
      kills.map(({ x }) => x),
    );
    return { spans: onRow, short: onScreen(plot, row.shortOfCpu), ends: kills, name: place };
  }, [plot, row]);
  const height = plot.picture.measures.row;
  const pod = row.pod === null ? undefined : plot.run.pods[row.pod];
  const kind = pod === undefined ? "condition" : `life ${pod.qosClass}${focused(row.pod, focus)}`;
  const inside = pod === undefined ? "on-condition" : isDark(pod.colour) ? "on-dark" : "on-light";
  const colour = pod === undefined ? {} : { fill: pod.colour };
  const shared = { y: top + 1, height: height - 4, rounded: true, pod: row.pod, ...colour };
  const below = { y: top + height - 6, height: 3, title: "short of CPU" };
  return (
    <>
      {spans.map((span, index) => (
        <Bar key={index} class={kind} span={span} {...shared} />
      ))}
      {short.map((span, index) => (
        <Bar key={index} class="short-of-cpu" span={span} {...below} />
      ))}
      {name === null ? null : (
        <text
          class={`name ${name.isInside ? inside : "outside"}${focused(row.pod, focus)}`}
          data-pod={row.pod ?? undefined}
          x={name.x}
          y={top + 12.5}
        >
          {name.text}
        </text>
      )}
      {ends.map(({ by, x }, index) => (
        <g key={index} class={`mark small ${by}`}>
          <Shape by={by} x={x} y={top + height / 2 - 1} size={5} />
        </g>
      ))}
    </>
  );
}
