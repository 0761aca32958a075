// The probability that the kubelet acts first, by growth rate: as a curve and as a table.

import { bytes } from "../../format";
import type { CurvePoint } from "../../schema";
import { Table } from "../ui";
import { useWidth } from "../windowed";

const [LEFT, RIGHT, TOP, BOTTOM] = [44, 14, 12, 38];

export interface Line {
  name: string;
  /** `now` is the result, `was` the comparison. */
  kind: "now" | "was";
  points: readonly CurvePoint[];
}

export function percent(share: number): string {
  const value = share * 100;
  return `${value > 0 && value < 1 ? "< 1" : value < 100 && value > 99 ? "> 99" : Math.round(value)} %`;
}

/** Whether the rate makes no difference: then there is nothing to draw, and words say it. */
export function isFlat(points: readonly CurvePoint[]): boolean {
  return new Set(points.map((point) => point.kubeletFirst)).size < 2;
}

/** `rate` is the selected one; `choose` is called with the one that was clicked. */
export function Curve({
  lines,
  rate,
  choose,
  height = 260,
}: {
  lines: readonly Line[];
  rate?: number;
  choose?: (rate: number) => void;
  height?: number;
}) {
  const [place, width] = useWidth("curve");
  const rates = lines[0]?.points.map((point) => point.rateBytesPerSecond) ?? [];
  const [low, high] = [Math.log2(rates[0] ?? 1), Math.log2(rates.at(-1) ?? 2)];
  const x = (value: number) =>
    LEFT + ((Math.log2(value) - low) / Math.max(high - low, 1)) * (width - LEFT - RIGHT);
  const y = (share: number) => TOP + (1 - share) * (height - TOP - BOTTOM);
  const every = width < 420 ? 4 : width < 700 ? 2 : 1;
  const isSame =
    lines.length === 2 &&
    lines[0]?.points.every((point, index) => point.kubeletFirst === lines[1]?.points[index]?.kubeletFirst);
  const shown = isSame ? lines.filter((line) => line.kind === "now") : lines;
  const point = (event: { clientX: number; currentTarget: Element }) => {
    const at = event.clientX - event.currentTarget.getBoundingClientRect().left;
    const share = Math.min(1, Math.max(0, (at - LEFT) / (width - LEFT - RIGHT)));
    choose?.(Math.round(2 ** (low + share * (high - low))));
  };
  return (
    <div class="curve">
      <p class="legend">
        {shown.map((line) => (
          <span key={line.name} class={`line-sign ${line.kind}`}>
            {isSame ? "Current settings" : line.name}
          </span>
        ))}
      </p>
      <div ref={place} class="curve-place" style={{ height: `${height}px` }}>
        {width > 0 ? (
          <svg
            width={width}
            height={height}
            role="img"
            aria-label={summary(shown)}
            onPointerDown={point}
            onPointerMove={(event) => event.buttons === 1 && point(event)}
          >
            {[0, 0.25, 0.5, 0.75, 1].map((share) => (
              <g key={share}>
                <line class="grid" x1={LEFT} x2={width - RIGHT} y1={y(share)} y2={y(share)} />
                <text class="curve-tick" x={LEFT - 6} y={y(share) + 4} text-anchor="end">
                  {`${share * 100} %`}
                </text>
              </g>
            ))}
            {rates
              .filter((_, index) => index % every === 0)
              .map((value) => (
                <text
                  key={value}
                  class="curve-tick"
                  x={x(value)}
                  y={height - BOTTOM + 16}
                  text-anchor="middle"
                >
                  {bytes(value)}
                </text>
              ))}
            <text class="curve-tick" x={width - RIGHT} y={height - 4} text-anchor="end">
              growth per second
            </text>
            <text class="curve-tick" x={0} y={height - 4}>
              % of the time the kubelet is first
            </text>
            {rate === undefined ? null : (
              <g class="chosen-rate">
                <line x1={x(rate)} x2={x(rate)} y1={TOP} y2={height - BOTTOM} />
                {shown.map((line) => (
                  <circle
                    key={line.name}
                    class={line.kind}
                    cx={x(rate)}
                    cy={y(shareAt(line.points, rate))}
                    r={5}
                  />
                ))}
              </g>
            )}
            {shown.map((line) => (
              <path
                key={line.name}
                class={`line ${line.kind}`}
                d={line.points
                  .map(
                    (each, index) =>
                      `${index === 0 ? "M" : "L"}${x(each.rateBytesPerSecond)} ${y(each.kubeletFirst)}`,
                  )
                  .join("")}
              />
            ))}
          </svg>
        ) : null}
      </div>
      <details>
        <summary>Show as a table</summary>
        <Table<{ rate: number; index: number }>
          rows={rates.map((each, index) => ({ rate: each, index }))}
          columns={[
            { name: "Growth", cell: (row) => `${bytes(row.rate)}/s` },
            ...shown.map((line) => ({
              name: line.name,
              number: true,
              cell: (row: { rate: number; index: number }) =>
                percent(line.points[row.index]?.kubeletFirst ?? 0),
            })),
          ]}
        />
      </details>
    </div>
  );
}

/** Return the probability at a rate between two points. */
export function shareAt(points: readonly CurvePoint[], rate: number): number {
  const at = Math.log2(rate);
  for (let index = 1; index < points.length; index++) {
    const [one, other] = [points[index - 1] as CurvePoint, points[index] as CurvePoint];
    const [left, right] = [Math.log2(one.rateBytesPerSecond), Math.log2(other.rateBytesPerSecond)];
    if (at <= right)
      return (
        one.kubeletFirst +
        (other.kubeletFirst - one.kubeletFirst) * Math.min(1, Math.max(0, (at - left) / (right - left)))
      );
  }
  return points.at(-1)?.kubeletFirst ?? 0;
}

function summary(lines: readonly Line[]): string {
  const words = lines.map((line) => {
    const [first, last] = [line.points[0], line.points.at(-1)];
    if (first === undefined || last === undefined) return "";
    const at = (point: Line["points"][number]) =>
      `${percent(point.kubeletFirst)} at ${bytes(point.rateBytesPerSecond)} per second`;
    return `${line.name}: from ${at(first)} to ${at(last)}`;
  });
  return `Probability that the kubelet acts first. ${words.join(". ")}.`;
}
