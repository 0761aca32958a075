// The race at one growth rate: memory over time, the thresholds it crosses, and the moment of the eviction or
// the OOM kill.

import { about, seconds } from "../../format";
import type { Forecast, ForecastOutcome } from "../../schema";
import { useWidth } from "../windowed";

const [LEFT, RIGHT, TOP, BOTTOM] = [56, 14, 20, 40];
const HEIGHT = 230;
const BETWEEN_LABELS = 15;

interface Level {
  name: string;
  bytes: number;
  kind: string;
}

export function Race({ growth, label }: { growth: Forecast; label: string }) {
  const [place, width] = useWidth("race");
  const rate = growth.rateBytesPerSecond;
  const end = growth.outOfMemoryAfterSeconds;
  const last = Math.max(end, ...growth.outcomes.map((outcome) => outcome.latestSeconds)) * 1.04;
  const most = Math.max(end * rate, 1) * 1.06;
  const x = (at: number) => LEFT + (at / last) * (width - LEFT - RIGHT);
  const y = (grown: number) => TOP + (1 - grown / most) * (HEIGHT - TOP - BOTTOM);
  const crossed = growth.thresholds.filter((threshold) => threshold.crossedAfterSeconds <= end);
  const levels: Level[] = [
    { name: limitName(growth), bytes: end * rate, kind: "kernel" },
    ...crossed.map((threshold) => ({
      name: `${threshold.type} threshold ${about(threshold.amount)}`,
      bytes: threshold.crossedAfterSeconds * rate,
      kind: "kubelet",
    })),
  ];
  const labels = apart(levels.map((level) => y(level.bytes)));
  return (
    <div ref={place} class="curve-place race" style={{ height: `${HEIGHT}px` }}>
      {width > 0 ? (
        <svg width={width} height={HEIGHT} role="img" aria-label={label}>
          {[0, 0.5, 1].map((share) => (
            <text key={share} class="curve-tick" x={LEFT - 6} y={y(share * end * rate) + 4} text-anchor="end">
              {share === 0 ? "now" : `+${about(share * end * rate)}`}
            </text>
          ))}
          {[0, 0.25, 0.5, 0.75, 1].map((share) => (
            <text
              key={share}
              class="curve-tick"
              x={x(share * last)}
              y={HEIGHT - BOTTOM + 16}
              text-anchor={share === 1 ? "end" : "middle"}
            >
              {seconds(rounded(share * last))}
            </text>
          ))}
          <text class="curve-tick" x={width - RIGHT} y={HEIGHT - 6} text-anchor="end">
            time since the growth began
          </text>
          <line class="grid" x1={LEFT} x2={width - RIGHT} y1={y(0)} y2={y(0)} />
          {levels.map((level, index) => (
            <g key={level.name} class={`level ${level.kind}`}>
              <line x1={LEFT} x2={width - RIGHT} y1={y(level.bytes)} y2={y(level.bytes)} />
              <text x={LEFT + 4} y={(labels[index] ?? 0) - 4}>
                {level.name}
              </text>
            </g>
          ))}
          <path class="line growth" d={`M${x(0)} ${y(0)}L${x(end)} ${y(end * rate)}`} />
          {growth.outcomes.map((outcome) => (
            <Moment
              key={`${outcome.by} ${outcome.pod}`}
              outcome={outcome}
              x={x}
              y={(at) => y(Math.min(at, end) * rate)}
            />
          ))}
        </svg>
      ) : null}
    </div>
  );
}

/** An eviction can happen at any time of a span, an OOM kill at one moment. */
function Moment(props: { outcome: ForecastOutcome; x: (at: number) => number; y: (at: number) => number }) {
  const { outcome, x, y } = props;
  const [from, to] = [outcome.earliestSeconds, outcome.latestSeconds];
  return (
    <g class={`moment ${outcome.by}`}>
      {to > from ? <path class="span" d={`M${x(from)} ${y(from)}L${x(to)} ${y(to)}`} /> : null}
      {outcome.by === "kernel" ? (
        <path class="mark" d={`M${x(to)} ${y(to) - 8}l8 8l-8 8l-8 -8z`} />
      ) : (
        <circle class="mark" cx={x(from)} cy={y(from)} r={7} />
      )}
    </g>
  );
}

function limitName({ outOfMemory }: Forecast): string {
  if (outOfMemory === "container") return "the container's memory limit";
  if (outOfMemory === "pod") return "the pod's memory limit";
  return outOfMemory === "node" ? "the machine is out of memory" : "the pods' memory limit";
}

/** Positions of labels that do not overlap, each at or below its own. */
function apart(wanted: readonly number[]): number[] {
  const order = [...wanted.keys()].sort((one, other) => (wanted[one] ?? 0) - (wanted[other] ?? 0));
  const found: number[] = [];
  let free = -Infinity;
  for (const index of order) {
    found[index] = Math.max(wanted[index] ?? 0, free);
    free = (found[index] ?? 0) + BETWEEN_LABELS;
  }
  return found;
}

function rounded(value: number): number {
  return Number(value.toPrecision(2));
}
