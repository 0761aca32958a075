// The victims: killed or evicted, why, and what would have saved the pod. One entry of the list is open.

import { count, fate, time } from "../../format";
import { nameOf } from "../../run";
import type { Kill, Saving } from "../../schema";
import { Sign } from "./sign";
import { useLooking, type State } from "./state";

/** More than these scroll. */
const FEW = 8;

export function Kills({ state }: { state: State }) {
  const open = useLooking(state, "kill", "node").kill;
  const { kills, untold } = state;
  const isKilled = kills.some((kill) => kill.by === "kernel");
  const isEvicted = kills.some((kill) => kill.by !== "kernel");
  return (
    <section class="card victims-list" aria-labelledby="kills">
      <h2 id="kills">{isKilled === isEvicted ? "Killed and evicted" : isKilled ? "Killed" : "Evicted"}</h2>
      {kills.length === 0 ? (
        <p class="quiet">No OOM kills and no evictions on this node.</p>
      ) : (
        <ol class={kills.length > FEW ? "kills many" : "kills"}>
          {kills.map((kill, index) => (
            <Entry key={index} state={state} kill={kill} index={index} isOpen={kill === open} />
          ))}
        </ol>
      )}
      {untold > 0 && kills.length > 0 ? (
        <p class="quiet">
          {`Only the first ${count(kills.length)} are marked; ${count(untold)} more are in the journal.`}
        </p>
      ) : null}
    </section>
  );
}

function Entry({ state, kill, index, isOpen }: { state: State; kill: Kill; index: number; isOpen: boolean }) {
  const id = `kill-${index}`;
  const toggle = () => (isOpen ? state.change({ kill: null }) : state.showKill(kill));
  return (
    <li class={`kill ${kill.by}${isOpen ? " open" : ""}`}>
      <button type="button" aria-expanded={isOpen} aria-controls={id} data-kill={index} onClick={toggle}>
        <Sign by={kill.by} number={String(index + 1)} />
        <span class="what">
          <b>{nameOf(state.run, kill.pod)}</b>
          {` ${fate(kill.by)}`}
          {isOpen ? null : <span class="quiet">{kill.cause}</span>}
        </span>
        <time>{time(kill.timeUs)}</time>
      </button>
      {isOpen ? <Details kill={kill} id={id} /> : null}
    </li>
  );
}

function Details({ kill, id }: { kill: Kill; id: string }) {
  return (
    <div class="details" id={id}>
      <ul class="reasons">
        {kill.reasons.map((reason) => (
          <li key={reason}>{reason}</li>
        ))}
      </ul>
      <Savings title="What would have saved it" of={kill.savings.filter((each) => each.saves)} />
      <Savings title="What would not have helped" of={kill.savings.filter((each) => !each.saves)} />
    </div>
  );
}

function Savings({ title, of }: { title: string; of: readonly Saving[] }) {
  if (of.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul class="savings">
        {of.map((saving, index) => (
          <li key={index} class={saving.saves ? "saves" : "not"}>
            <b>{saving.change}</b>
            <span>{` ${saving.effect}`}</span>
            {saving.saves && saving.costs.length > 0 ? (
              <span class="quiet">{`; costs ${saving.costs.join("; ")}`}</span>
            ) : null}
            {saving.edits.length > 0 ? <pre>{saving.edits.join("\n")}</pre> : null}
          </li>
        ))}
      </ul>
    </>
  );
}
