// The guard of a node: its mode, what blocks evictions, and its latest decisions.

import type { GuardPanel } from "../../schema";
import { Card, Facts } from "../ui";

export function GuardCard({ guard }: { guard: GuardPanel }) {
  return (
    <Card
      title={
        guard.enforce && guard.heldBack === ""
          ? "Guard: enforcing"
          : guard.enforce
            ? "Guard: evictions blocked"
            : "Guard: shadow mode"
      }
      kind="wide guard"
    >
      <p>{guard.mode}</p>
      <Facts
        of={guard.facts.filter(({ name }) => name !== "mode").map(({ name, text }) => [name, text] as const)}
      />
      <h3>Latest decisions</h3>
      {guard.entries.length === 0 ? (
        <p class="quiet">None yet.</p>
      ) : (
        <ol class="guard-entries">
          {guard.entries.map(({ time, kind, pod, text, reasons }) => (
            <li key={`${time} ${kind} ${pod}`}>
              <details>
                <summary>
                  <time dateTime={new Date(time * 1000).toISOString()}>
                    {new Date(time * 1000).toLocaleString("en-GB", {
                      dateStyle: "medium",
                      timeStyle: "medium",
                    })}
                  </time>{" "}
                  <span title={pod}>{text}</span>
                </summary>
                <ul class="reasons">
                  {reasons.map((reason) => (
                    <li key={reason}>{reason}</li>
                  ))}
                </ul>
              </details>
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}
