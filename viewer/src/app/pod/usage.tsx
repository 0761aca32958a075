// Usage over time: a chart per container with request, limit and the moments of OOM kills and evictions.

import { about, bytes, count, plural } from "../../format";
import type { UsageChart, UsageDeath, UsageHistory, UsageLine } from "../../schema";
import { Card, Key, Table } from "../ui";
import { useWidth } from "../windowed";
import "./usage.css";

const [LEFT, RIGHT, TOP, BOTTOM] = [52, 14, 26, 36];
const HEIGHT = 210;
/** The width of a label of the time axis, of a letter and of half a mark, in pixels. */
const [LABEL, LETTER, MARK] = [76, 6.4, 8];

export function Usage({ usage, kind }: { usage: UsageHistory; kind: string }) {
  return (
    <Card title="Memory over time" kind={kind}>
      {usage.charts.length === 0 ? <p class="quiet">{usage.how}</p> : null}
      {usage.whose ? <p class="quiet">{`Recorded for pods of ${usage.whose}.`}</p> : null}
      {usage.charts.map((chart) => (
        <section key={chart.container} class="usage-chart">
          <h3>{chart.container}</h3>
          <p>{chart.text}</p>
          <Chart chart={chart} usage={usage} />
          <details>
            <summary>Show as a table</summary>
            <Table<UsageLine>
              rows={chart.lines}
              columns={[
                { name: "Pod", cell: (line) => <Key of={line.pod} /> },
                { name: "Peak", cell: (line) => line.text },
                { name: "Samples", number: true, cell: (line) => count(line.samples) },
              ]}
            />
            {chart.linesLeftOut > 0 ? (
              <p class="quiet">{`${plural(chart.linesLeftOut, "pod")} with lower peaks not shown.`}</p>
            ) : null}
          </details>
        </section>
      ))}
    </Card>
  );
}

function Chart({ chart, usage }: { chart: UsageChart; usage: UsageHistory }) {
  const [place, width] = useWidth("usage");
  const highest = Math.max(...chart.lines.map((line) => line.peakBytes));
  const most = Math.max(highest, chart.limitBytes ?? 0, chart.requestBytes ?? 0, 1);
  const span = Math.max(usage.endSeconds - usage.startSeconds, 1);
  const x = (seconds: number) => LEFT + ((seconds - usage.startSeconds) / span) * (width - LEFT - RIGHT);
  const y = (amount: number) => TOP + (1 - amount / (most * 1.05)) * (HEIGHT - TOP - BOTTOM);
  const every = Math.max(1, Math.ceil((usage.ticks.length * LABEL) / Math.max(width - LEFT - RIGHT, 1)));
  return (
    <div ref={place} class="usage-place" style={{ height: `${HEIGHT}px` }}>
      {width > 0 ? (
        <svg
          width={width}
          height={HEIGHT}
          role="img"
          aria-label={`Memory of ${chart.container}. ${chart.text}`}
        >
          {[0, most / 2, most].map((amount) => (
            <g key={amount}>
              <line class="grid" x1={LEFT} x2={width - RIGHT} y1={y(amount)} y2={y(amount)} />
              <text class="usage-tick" x={LEFT - 6} y={y(amount) + 4} text-anchor="end">
                {about(amount)}
              </text>
            </g>
          ))}
          {usage.ticks
            .filter((_, index) => index % every === 0)
            .map((tick) => (
              <text
                key={tick.seconds}
                class="usage-tick"
                x={Math.min(Math.max(x(tick.seconds), LEFT), width - RIGHT)}
                y={HEIGHT - BOTTOM + 16}
                text-anchor={x(tick.seconds) > width - RIGHT - LABEL / 2 ? "end" : "middle"}
              >
                {tick.label}
              </text>
            ))}
          <text class="usage-tick" x={width - RIGHT} y={HEIGHT - 4} text-anchor="end">
            {`time (${usage.axis})`}
          </text>
          <Level name="request" amount={chart.requestBytes} y={y} width={width} />
          <Level name="limit" amount={chart.limitBytes} y={y} width={width} />
          {chart.lines.toReversed().map((line) => (
            <path
              key={line.pod}
              class={`usage-line ${line === chart.lines[0] ? "" : "other"}`}
              d={line.points
                .map((point, index) => {
                  const move = index === 0 || point.isAfterGap ? "M" : "L";
                  return `${move}${x(point.seconds).toFixed(1)} ${y(point.bytes).toFixed(1)}`;
                })
                .join("")}
            />
          ))}
          {labelled(chart.deaths, x, width).map(({ death, hasLabel }, index) => (
            <Death key={index} death={death} at={x(death.seconds)} width={width} hasLabel={hasLabel} />
          ))}
        </svg>
      ) : null}
    </div>
  );
}

interface LevelProps {
  name: "request" | "limit";
  amount: number | null;
  y: (amount: number) => number;
  width: number;
}

function Level({ name, amount, y, width }: LevelProps) {
  if (amount === null) return null;
  // At either end, so that equal ones are both read.
  const isLimit = name === "limit";
  return (
    <g>
      <line class={`usage-level ${name}`} x1={LEFT} x2={width - RIGHT} y1={y(amount)} y2={y(amount)} />
      <text
        class="usage-label"
        x={isLimit ? width - RIGHT : LEFT + 4}
        y={y(amount) - 4}
        text-anchor={isLimit ? "end" : "start"}
      >
        {`${name} ${bytes(amount)}`}
      </text>
    </g>
  );
}

/** The deaths, and which of them have their words next to the mark: the last ones, if there is room. */
function labelled(deaths: readonly UsageDeath[], x: (seconds: number) => number, width: number) {
  let free = Infinity;
  return deaths
    .toReversed()
    .map((death) => {
      const at = x(death.seconds);
      const wide = death.text.length * LETTER + 2 * MARK;
      const [from, to] = at > width / 2 ? [at - wide, at + MARK] : [at - MARK, at + wide];
      const isIn = (other: UsageDeath) => within(x(other.seconds), from - MARK, to + MARK);
      const isNearest = deaths.every((other) => other === death || !isIn(other));
      const hasLabel = to <= free && isNearest;
      if (hasLabel) free = from;
      return { death, hasLabel };
    })
    .toReversed();
}

function within(value: number, from: number, to: number): boolean {
  return from < value && value < to;
}

interface DeathProps {
  death: UsageDeath;
  at: number;
  width: number;
  hasLabel: boolean;
}

/** A death, with its mark at the top and its words at the side that has room. */
function Death({ death, at, width, hasLabel }: DeathProps) {
  const isRight = at > width / 2;
  return (
    <g class={`usage-death ${death.by}`}>
      <line x1={at} x2={at} y1={TOP - 8} y2={HEIGHT - BOTTOM} />
      {death.by === "kernel" ? (
        <path class="mark" d={`M${at} ${TOP - 18}l7 7l-7 7l-7 -7z`} />
      ) : (
        <circle class="mark" cx={at} cy={TOP - 11} r={6} />
      )}
      <title>{death.text}</title>
      {hasLabel ? (
        <text
          class="usage-label"
          x={isRight ? at - 10 : at + 10}
          y={TOP - 8}
          text-anchor={isRight ? "end" : "start"}
        >
          {death.text}
        </text>
      ) : null}
    </g>
  );
}
