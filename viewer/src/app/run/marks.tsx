// The victims above the panels: a sign with a number, the name and the reason, and a line through each panel.

import { useMemo } from "preact/hooks";
import { fate, time, victims } from "../../format";
import { nameOf } from "../../run";
import type { Kill } from "../../schema";
import { useLater } from "../frames";
import { kept } from "../ui";
import type { Plot } from "./plot";
import { Glyph, Shape } from "./sign";
import { signOf, type Group, type Rail } from "./victims";

/** From where to where a panel is drawn. */
export type Extent = readonly [top: number, bottom: number];

interface MarksProps {
  plot: Plot;
  rail: Rail;
  extents: readonly Extent[];
  selected: Kill | null;
  choose: (kill: Kill) => void;
}

export const Marks = kept(function Marks({ selected, choose, ...placed }: MarksProps) {
  const now = useMemo(() => placed, [placed.plot, placed.rail, placed.extents]);
  const { plot, rail, extents } = useLater(now, ["beforeprint"]);
  const { lane, signs } = plot.picture.measures;
  return (
    <g class="marks">
      <g class="leaders">
        {rail.names.map((name, index) => (
          <path
            key={index}
            class={`leader ${name.by}`}
            d={`M${name.x} ${name.lane * lane + 20}V${rail.height - signs}`}
          />
        ))}
      </g>
      <g class="victims">
        {rail.names.map(({ left, width, by, lane: row, name, cause }, index) => (
          <g key={index}>
            <rect class="behind" x={left - 3} y={row * lane} width={width + 6} height={lane - 2} />
            <text class={`victim ${by}`} x={left} y={row * lane + 12}>
              {name}
            </text>
            <text class="cause" x={left} y={row * lane + 25.5}>
              {cause}
            </text>
          </g>
        ))}
      </g>
      {rail.groups.map((group, index) => (
        <Mark
          key={index}
          plot={plot}
          group={group}
          y={rail.height - 19}
          through={extents.map(([top, bottom]) => `M${group.x} ${top}V${bottom}`).join("")}
          selected={selected}
          choose={choose}
        />
      ))}
    </g>
  );
});

interface MarkProps extends Pick<MarksProps, "plot" | "selected" | "choose"> {
  group: Group;
  y: number;
  through: string;
}

function Mark({ plot, group, y, through, selected, choose }: MarkProps) {
  const { x, kills } = group;
  const by = signOf(kills);
  const number = kills.length === 1 ? String(plot.kills.indexOf(kills[0] as Kill) + 1) : `${kills.length}×`;
  const words = wordsOf(plot, kills);
  const at = selected === null ? -1 : kills.indexOf(selected);
  /** Of several, one after the other. */
  const press = () => choose(kills[(at + 1) % kills.length] as Kill);
  return (
    <g
      class={`mark ${by}${at >= 0 ? " selected" : ""}`}
      role="button"
      tabindex={0}
      aria-label={`${number} ${words}`}
      aria-pressed={at >= 0}
      onClick={press}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        press();
      }}
    >
      <title>{words}</title>
      <path class="through" d={through} />
      <Shape by={by} x={x} y={y} />
      <Glyph words={number} x={x} y={y} />
    </g>
  );
}

function wordsOf({ run }: Plot, kills: readonly Kill[]): string {
  const [first] = kills as [Kill];
  if (kills.length > 1) return `${victims(kills.map((kill) => kill.by))} from ${time(first.timeUs)}`;
  return `${nameOf(run, first.pod)} ${fate(first.by)} after ${time(first.timeUs)}: ${first.cause}`;
}
