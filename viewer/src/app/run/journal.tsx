// The journal of a run in words.

import { useState } from "preact/hooks";
import { count, time } from "../../format";
import { Sign } from "./sign";
import { useLooking, type State } from "./state";

const MOST_EVENTS = 500;
const HOUSEKEEPING: ReadonlySet<string> = new Set(["Placed", "Admitted", "Stopped", "CleanedUp", "Exited"]);

export function Journal({ state }: { state: State }) {
  const { node } = useLooking(state, "node");
  const [all, setAll] = useState(false);
  const own = state.run.events.filter((event) => event.node === node.name || event.node === "");
  const events = all ? own : own.filter((event) => !HOUSEKEEPING.has(event.kind));
  const more = events.length - MOST_EVENTS;
  return (
    <div>
      <label class="quiet">
        <input type="checkbox" checked={all} onChange={() => setAll(!all)} />
        {" include housekeeping: placed, admitted, exited, stopped, cleaned up"}
      </label>
      <ol class="journal scroll tall" tabindex={0} aria-label="Journal">
        {events.slice(0, MOST_EVENTS).map((event, index) => (
          <li key={index} class={event.kind}>
            <button type="button" title="Move the cursor here" onClick={() => state.moveTo(event.timeUs)}>
              {time(event.timeUs)}
            </button>
            {event.kind === "OOMKilled" || event.kind === "Evicted" ? (
              <Sign by={event.by ?? "kubelet"} />
            ) : (
              <span class="icon" />
            )}
            <span>{event.text}</span>
          </li>
        ))}
      </ol>
      {more > 0 ? <p class="quiet">{`${count(more)} more: use -o jsonl to see all.`}</p> : null}
    </div>
  );
}
