// A death that opens where it is clicked: the verdict, what is known, what would have saved it, the memory,
// the ranking.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Death as Fatal } from "../../schema";
import { Sign } from "../run/sign";
import { Swatch } from "../swatch";
import { MemoryTree, capital } from "./memory";
import { Ranking } from "./ranking";

/** Who removes pods; whoever else is named kills processes: the kernel, or a program such as systemd-oomd. */
const REMOVED: Readonly<Record<string, string>> = {
  kubelet: "evicted",
  "podqos guard": "evicted",
  user: "evicted",
  scheduler: "preempted",
  "control plane": "deleted",
};

export function signOf(by: string): string {
  return by in REMOVED ? "kubelet" : "kernel";
}

/** A moment of a log, to the second: `2026-11-16T03:12:07.104233+00:00` is 2026-11-16 03:12:07 UTC. */
export function moment(at: string): string {
  return at.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)$/, "$1 $2 UTC");
}

/** What is inside is rendered when it is opened first, and then kept. */
export function Death({ death, number, isFirst }: { death: Fatal; number: number; isFirst: boolean }) {
  const [isOpen, setOpen] = useState(isFirst);
  const [wasOpen, setWasOpen] = useState(isFirst);
  const id = `death-${number}`;
  const toggle = () => {
    setWasOpen(true);
    setOpen(!isOpen);
  };
  return (
    <li class={`kill ${signOf(death.by)}`}>
      <button type="button" aria-expanded={isOpen} aria-controls={id} onClick={toggle}>
        <Sign by={signOf(death.by)} number={String(number)} />
        <span class="what">
          {death.pod ? <Swatch pod={death.pod} qosClass={death.qosClass || null} /> : null}
          <b>{death.who}</b> {`${REMOVED[death.by] ?? "killed"} (${death.by})`}
          <span class="quiet">{death.what}</span>
        </span>
        <time>{moment(death.when)}</time>
      </button>
      <div class="details" id={id} hidden={!isOpen}>
        {wasOpen ? <Details death={death} /> : null}
      </div>
    </li>
  );
}

function Details({ death }: { death: Fatal }) {
  const told: (readonly [string, string])[] = [
    ...death.causes.filter((cause) => cause.words).map((cause) => ["cause", cause.words] as const),
    ...(death.next ? [["next", death.next] as const] : []),
    ...death.evidence.map((fact) => [fact.label, fact.words] as const),
  ];
  return (
    <>
      {death.why ? <p class={`verdict ${String(death.followsRule)}`}>{capital(death.why)}</p> : null}
      <dl class="told">
        {told.map(([label, words], place) => (
          <div key={place}>
            <dt>{label}</dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
      <Savings of={death.savedBy.map((saving) => saving.words).filter(Boolean)} />
      {death.tree.length > 0 ? <MemoryTree rows={death.tree} /> : null}
      <Ranking death={death} />
    </>
  );
}

function Savings({ of }: { of: readonly string[] }): ComponentChildren {
  if (of.length === 0) return null;
  return (
    <>
      <h3>What would have saved it</h3>
      <ul class="savings">
        {of.map((words, place) => (
          <li key={place} class="saves">
            {words}
          </li>
        ))}
      </ul>
    </>
  );
}
