// What saves a pod: edits that were tried, with what they cost, and changes that are not offered, with why.

import { useState } from "preact/hooks";
import { ordinal, signed } from "../../format";
import type { PodEdit, PodPage, PodStanding, SaferEdit } from "../../schema";
import { tryAddress } from "../fixes";
import { Card, Choice, Copyable } from "../ui";

const NOTHING_HELPS =
  "Nothing that was tried protects this pod: neither a change to its manifest nor lower usage.";

export function Protection({ pod, canTry }: { pod: PodPage; canTry: boolean }) {
  const { safer, standing, withheld, workload } = pod;
  return (
    <Card title="How to protect it" kind="turn-3">
      {safer.map((edit, index) => (
        <Safer key={index} edit={edit} now={standing} workload={workload} canTry={canTry} />
      ))}
      {withheld.map((each) => (
        <p key={each.text} class="safer">
          {safer.length > 0 ? "Not offered: " : "No safe fix. "}
          {each.text} {canTry ? <Try tries={each.tries} workload={workload} text="Try it anyway" /> : null}
        </p>
      ))}
      {safer.length + withheld.length > 0 ? null : (
        <p class="quiet">
          {standing === null
            ? "It is not ranked, so there is nothing to compare."
            : pod.unknown || NOTHING_HELPS}
        </p>
      )}
    </Card>
  );
}

function Try({ tries, workload, text }: { tries: readonly PodEdit[]; workload: string; text: string }) {
  return tries.length === 0 ? null : (
    <a class="tool" href={tryAddress(tries, workload)}>
      {text}
    </a>
  );
}

const FORMS = [
  ["kubectl", "kubectl"],
  ["kustomize", "Kustomize"],
  ["json", "JSON patch"],
] as const;

type SaferProps = { edit: SaferEdit; now: PodStanding | null; workload: string; canTry: boolean };

function Safer({ edit, now, workload, canTry }: SaferProps) {
  const given = edit.patch === null ? [] : FORMS.filter(([form]) => edit.patch?.[form]);
  const [form, setForm] = useState<string>(given[0]?.[0] ?? "");
  const text = edit.patch?.[form as keyof typeof edit.patch] ?? null;
  return (
    <div class="safer">
      <h3>{edit.remedy?.change ?? edit.change.charAt(0).toUpperCase() + edit.change.slice(1)}</h3>
      {edit.remedy === null ? null : (
        <p>
          {`${edit.by === "kernel" ? "Against an OOM kill" : "Against eviction"}: ${edit.remedy.effect}.`}
        </p>
      )}
      {edit.target === "" ? null : (
        <p>
          Edit {edit.target}. {edit.then}{" "}
          {canTry ? <Try tries={edit.tries} workload={workload} text="Try it" /> : null}
        </p>
      )}
      <ul class="edits">
        {edit.edits.map((each) => (
          <li key={each.path}>
            <code class="key">{each.path}</code>:{" "}
            {each.replaces === null ? null : (
              <>
                <del>{each.replaces}</del> →{" "}
              </>
            )}
            <b>{each.value ?? "choose a value"}</b>
          </li>
        ))}
      </ul>
      <p class="after">{after(edit.after, now)}</p>
      {edit.remedy === null ? null : (
        <ul class="reasons">
          {edit.remedy.costs.map((each) => (
            <li key={each}>{`Cost: ${each}.`}</li>
          ))}
          {edit.remedy.restsOn.map((each) => (
            <li key={each} class="quiet">{`Tried: ${each}.`}</li>
          ))}
        </ul>
      )}
      {text === null ? null : (
        <>
          {given.length > 1 ? (
            <Choice
              label={`Form of the patch: ${edit.change}`}
              options={given}
              value={form}
              change={setForm}
            />
          ) : null}
          <Copyable text={text} what={`${FORMS.find(([each]) => each === form)?.[1] ?? ""} patch`} />
        </>
      )}
      {edit.patch !== null && edit.patch.kubectl === null ? (
        <p class="quiet">The API server rejects this change of an existing object: recreate it.</p>
      ) : null}
    </div>
  );
}

/** The effect of a change, as before → after. */
function after(then: PodStanding, now: PodStanding | null) {
  const parts: [string, string, string][] = [
    ["class", now?.qosClass ?? "", then.qosClass],
    [
      "oom_score_adj",
      now?.oomScoreAdj === null || now === null ? "" : signed(now.oomScoreAdj),
      then.oomScoreAdj === null ? "" : signed(then.oomScoreAdj),
    ],
    [
      "evicted",
      now?.spared ? "never" : nthOf(now?.evictionPlace),
      then.spared ? "never" : nthOf(then.evictionPlace),
    ],
    ["OOM-killed", nthOf(now?.killPlace), nthOf(then.killPlace)],
  ];
  return parts
    .filter(([, before, next]) => before !== next && next !== "")
    .map(([name, before, next]) => (
      <span key={name} class="change">
        {name} {before ? `${before} → ` : ""}
        <b>{next}</b>
      </span>
    ));
}

function nthOf(place: number | null | undefined): string {
  return place === null || place === undefined ? "" : ordinal(place);
}
