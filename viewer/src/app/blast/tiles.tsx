// The figures of a blast radius at a glance.

import { count, seconds } from "../../format";
import type { Blast, BlastRadius, BlastDeath } from "../../schema";
import { kept, NONE, Tile } from "../ui";
import { harmful } from "./model";
import { rate } from "./words";

interface Figures {
  /** Pods that take others down. */
  dangerous: number;
  victims: number;
  critical: number;
  guaranteed: number;
  /** The leak whose first victim dies first. */
  soonest: Blast | null;
  /** Leaks that nothing stops. */
  endless: number;
}

export function figuresOf(radius: BlastRadius): Figures {
  const leaks = harmful(radius);
  const lost = leaks.flatMap((leak) =>
    leak.others.map((death) => ({ death, key: `${leak.node} ${death.pod}` })),
  );
  const pods = (which: (death: BlastDeath) => boolean) =>
    new Set(lost.filter(({ death }) => which(death)).map(({ key }) => key)).size;
  const after = (leak: Blast) => leak.others[0]?.afterSeconds ?? 0;
  return {
    dangerous: new Set(leaks.map((leak) => `${leak.node} ${leak.pod}`)).size,
    victims: pods(() => true),
    critical: pods((death) => death.isCritical),
    guaranteed: pods((death) => death.qosClass === "Guaranteed"),
    soonest: leaks.toSorted((one, other) => after(one) - after(other))[0] ?? null,
    endless: radius.leaks.filter((leak) => leak.end === null).length,
  };
}

export const Tiles = kept(({ radius }: { radius: BlastRadius }) => {
  const { dangerous, victims, critical, guaranteed, soonest, endless } = figuresOf(radius);
  const alarm = (number: number) => (number > 0 ? "kernel" : "");
  return (
    <>
      <Tile
        value={`${count(dangerous)} of ${count(radius.pods)}`}
        name={radius.pods === 1 ? "pod takes others down" : "pods take others down"}
        note="if they leak"
        kind={alarm(dangerous)}
      />
      <Tile
        value={count(victims)}
        name={victims === 1 ? "pod can be taken down" : "pods can be taken down"}
        note="by another pod's leak"
      />
      <Tile value={count(critical)} name="critical victims" note="system pods" kind={alarm(critical)} />
      <Tile value={count(guaranteed)} name="Guaranteed victims" kind={alarm(guaranteed)} />
      <Tile
        value={soonest === null ? NONE : seconds(soonest.others[0]?.afterSeconds ?? 0)}
        name="until the first victim"
        note={soonest === null ? "no pod takes others down" : `${soonest.pod} at ${rate(soonest)}`}
      />
      {endless > 0 ? (
        <Tile
          value={count(endless)}
          name={endless === 1 ? "leak never ends" : "leaks never end"}
          note="nothing stops them"
        />
      ) : null}
    </>
  );
});
