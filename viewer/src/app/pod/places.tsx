// The places of a pod in both kill orders, with the pods just before and after it and the reasons.

import type { ComponentChildren } from "preact";
import { bytes, count, ordinal, plural, signed } from "../../format";
import type { KillPlace, PlaceNeighbour, PodPage } from "../../schema";
import { href } from "../router";
import { Facts, Key, Table } from "../ui";

type Fact = readonly [string, ComponentChildren];

export function Places({ pod }: { pod: PodPage }) {
  const { eviction, standing, kills, idle } = pod;
  return (
    <>
      <h3 class="kubelet">● Kubelet</h3>
      {eviction === null ? (
        <p class="quiet">Not in the eviction order.</p>
      ) : (
        <Facts
          of={[
            ["place", placeOf(eviction, standing?.pods)],
            ["uses", uses(eviction)],
            ...facts(pod.neighbours.filter((neighbour) => neighbour.by !== "kernel")),
          ]}
        />
      )}
      <h3 class="kernel">◆ Kernel</h3>
      {kills.length === 0 ? (
        <p class="quiet">Not in the OOM kill order.</p>
      ) : (
        <>
          <Table<KillPlace>
            rows={kills}
            columns={[
              { name: "Container", cell: (kill) => <span class="key">{kill.container}</span> },
              { name: "Place", number: true, cell: (kill) => ordinal(kill.place) },
              {
                name: "Uses",
                number: true,
                cell: (kill) => (kill.isMeasured ? bytes(kill.usedBytes) : "not measured"),
              },
              { name: "Adjustment", number: true, cell: (kill) => signed(kill.oomScoreAdj) },
              { name: "Badness", number: true, cell: (kill) => bytes(kill.badnessBytes) },
              { name: "Score", number: true, cell: (kill) => count(kill.oomScore) },
            ]}
          />
          <Facts
            of={[
              ...facts(pod.neighbours.filter((neighbour) => neighbour.by === "kernel")),
              ...margin(kills[0]?.marginBytes ?? null),
            ]}
          />
        </>
      )}
      {idle.map(({ container, reason }) => (
        <p key={container} class="quiet">
          <span class="key">{container}</span>
          {` has no process: ${reason || "it has not started yet"}.`}
        </p>
      ))}
    </>
  );
}

function placeOf({ place, spared }: NonNullable<PodPage["eviction"]>, pods: number | undefined): string {
  if (spared) return `never evicted: ${spared}`;
  return pods === undefined ? ordinal(place) : `${ordinal(place)} of ${plural(pods, "pod")}`;
}

function uses({ usage, request, overRequest }: NonNullable<PodPage["eviction"]>): string {
  if (usage === null) return "not known: the kubelet has no statistics of it";
  const requested = request > 0 ? `${bytes(request)} requested` : "nothing requested";
  return `${bytes(usage)}, ${requested}${overRequest && request > 0 ? ": more than it requests" : ""}`;
}

function facts(neighbours: readonly PlaceNeighbour[]): Fact[] {
  return neighbours.map((neighbour) => [
    neighbour.isEarlier ? "after" : "before",
    <>
      <a href={href("pod", neighbour.pod.split("/"))}>
        <Key of={neighbour.pod} />
      </a>
      {`: ${neighbour.text}`}
    </>,
  ]);
}

function margin(marginBytes: number | null): Fact[] {
  if (marginBytes === null) return [];
  return [["margin", `the next one is killed first only if it uses ${bytes(marginBytes)} more`]];
}
