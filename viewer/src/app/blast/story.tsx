// What one leak does, from its beginning to its end: a line with its victims, and the same in words.

import { count, plural, seconds } from "../../format";
import type { Blast, BlastDeath } from "../../schema";
import { Sign } from "../run/sign";
import { Swatch } from "../swatch";
import { Card, Chip, Key, kept } from "../ui";
import { taken } from "./model";
import { timelineOf, victimsOf } from "./timeline";
import { causeOf, how, rate } from "./words";

/** More victims than these are counted. */
const FEW = 4;

export const Story = kept(({ leak, isWorst }: { leak: Blast; isWorst: boolean }) => {
  const victims = victimsOf(leak);
  const who = leak.container === "" ? "system daemons" : leak.pod;
  const title = `${isWorst ? "The most dangerous leak" : "The chosen leak"}: ${who} at ${rate(leak)}`;
  const few = victims.length <= FEW + 1 ? victims : victims.slice(0, FEW);
  return (
    <Card id="story" title={title}>
      <Line leak={leak} />
      <ol class="leak-victims">
        {few.map((death) => (
          <li key={death.pod}>
            <Sign by={death.by} />
            <Victim death={death} />
          </li>
        ))}
      </ol>
      {few.length < victims.length ? (
        <p class="quiet">{`${count(victims.length - few.length)} more pods follow.`}</p>
      ) : null}
      <p class="quiet">{ending(leak)}</p>
    </Card>
  );
});

function Victim({ death }: { death: BlastDeath }) {
  return (
    <div>
      After {seconds(death.afterSeconds)},{" "}
      <b>
        <Swatch pod={death.pod} qosClass={death.qosClass} />
        <Key of={death.pod} />
      </b>{" "}
      is {how(death)}: {causeOf(death)}{" "}
      {death.isCritical ? <span class="alarm">critical</span> : <Chip qosClass={death.qosClass} />}
    </div>
  );
}

function ending(leak: Blast): string {
  if (leak.end === null) return "Nothing stops the leak itself.";
  const pods = taken(leak);
  const lost = pods === 0 ? "before any other pod" : `after ${plural(pods, "other pod")}`;
  return `${leak.pod} itself is ${how(leak.end)} after ${seconds(leak.end.afterSeconds)}, ${lost}.`;
}

/** A line from the beginning of the leak to its end. */
function Line({ leak }: { leak: Blast }) {
  const { marks, lasts, end } = timelineOf(leak);
  const at = (share: number) => ({ left: `${share * 100}%` });
  const words = marks.map((mark) => `${places(mark.places)} after ${seconds(mark.at * lasts)}`).join(", ");
  return (
    <div class="leak-line" role="img" aria-label={`Victims by time: ${words || "none"}`}>
      <span class="leak-begin">0 s</span>
      <i />
      {marks.map((mark) => (
        <span key={mark.at} class="leak-mark" style={at(mark.at)}>
          <Sign by={mark.by} number={numbers(mark.places)} />
        </span>
      ))}
      {end === null ? null : <b style={at(end)} />}
      <span class="leak-end">{end === null ? "goes on" : `${seconds(lasts)}: the leak ends`}</span>
    </div>
  );
}

/** `2` for the second victim, `3×` for three at once. */
function numbers(of: readonly number[]): string {
  return of.length === 1 ? String(of[0]) : `${of.length}×`;
}

function places(of: readonly number[]): string {
  return of.length === 1 ? `victim ${of[0]}` : `victims ${of[0]} to ${of.at(-1)}`;
}
