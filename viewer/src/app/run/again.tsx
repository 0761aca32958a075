// A scenario again with other values. The controls write the lines that `podqos simulate --what-if` takes,
// and show what lines say: the lines are what is sent, what the address holds and what can be copied.

import { useMemo, useState } from "preact/hooks";
import { bytes, count } from "../../format";
import type { ClusterView, ContainerExplanation, JobInfo, PodPage, RunView } from "../../schema";
import { podPath } from "../cluster/page";
import { Amount, amountOf, sameAmount, Slider } from "../controls";
import { change, here, href, useRoute } from "../router";
import { useAnswer } from "../source";
import { Awaited, Copyable, Select } from "../ui";
import type { App } from "../view";
import { nameOf } from "./jobs";
import "./again.css";

const EXAMPLES = "limits.memory@web=1Gi\nnodeLost@worker-1=10m\nphase=5s";
const HARD = "kubelet.evictionHard.memory.available";
const DURATION = "spec.duration";

const linesOf = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
const nameIn = (line: string) => line.slice(0, Math.max(0, line.indexOf("=")));

/** Change values, run the scenario again and compare. */
export function Again({
  app,
  run,
  runs,
  id,
  start,
}: {
  app: App;
  run: RunView;
  runs: readonly JobInfo[];
  id: string;
  start: (edits: readonly string[]) => Promise<void>;
}) {
  const route = useRoute();
  const own = runs.find((each) => each.id === id);
  const others = runs.filter((each) => each.id !== id);
  const [isBusy, setBusy] = useState(false);
  const written = (query: URLSearchParams) => query.get("edits") ?? own?.edits.join("\n") ?? "";
  const text = written(route.query);
  const lines = linesOf(text);
  // The text may be anything; without lines in the address, those of the run are shown.
  const rewrite = (next: string) => change({ edits: next === "" ? "\n" : next }, true);
  const write = (name: string, value: string, was: string) => {
    const now = linesOf(written(here().query)).filter((line) => nameIn(line) !== name);
    rewrite([...now, ...(value === "" || sameAmount(value, was) ? [] : [`${name}=${value}`])].join("\n"));
  };
  const value = (name: string) => lines.find((line) => nameIn(line) === name)?.slice(name.length + 1) ?? null;
  const isChanged = lines.join("\n") !== (own?.edits.join("\n") ?? "");
  const name = own === undefined ? "from an earlier version of the scenario" : nameOf(own);
  const options = lines.map((line) => `--what-if ${quoted(line)}`).join(" ");
  return (
    <section class="run-bar" aria-label="What-if values">
      <details open={route.query.has("edits") || (own !== undefined && own.edits.length > 0)}>
        <summary>{`This run: ${name}. Change values, run it again and compare.`}</summary>
        <form
          class="card run-form controls"
          // Keys in the form must not move the run's cursor.
          onKeyDown={(event) => event.stopPropagation()}
          onSubmit={(event) => {
            event.preventDefault();
            setBusy(true);
            void start(linesOf(written(here().query))).finally(() => setBusy(false));
          }}
        >
          <div class="run-controls">
            <Workload app={app} run={run} chosen={route.query.get("of") ?? ""} value={value} write={write} />
            <Whole app={app} run={run} value={value} write={write} />
            <fieldset>
              <legend>Changes</legend>
              <label class="field">
                <span>One change per line, in the syntax of podqos simulate --what-if</span>
                <textarea
                  rows={5}
                  value={text.trim() === "" ? "" : text}
                  placeholder={EXAMPLES}
                  spellcheck={false}
                  onInput={(event) => rewrite(event.currentTarget.value)}
                />
              </label>
              {lines.length > 0 ? (
                <Copyable what="the command" text={`podqos simulate ${app.info.name} ${options}`} />
              ) : null}
            </fieldset>
          </div>
          <div class="row">
            <button type="submit" class="tool primary" disabled={isBusy || lines.length === 0 || !isChanged}>
              Run and compare
            </button>
            <button type="button" class="tool" disabled={!isChanged} onClick={() => change({ edits: null })}>
              Reset
            </button>
            {others.length > 0 ? (
              <p class="runs-done">
                Compare with:
                {others.map((each) => (
                  <a
                    key={each.id}
                    href={
                      runs.indexOf(each) < runs.findIndex((run) => run.id === id)
                        ? href("compare", [each.id, id])
                        : href("compare", [id, each.id])
                    }
                  >
                    {nameOf(each)}
                  </a>
                ))}
              </p>
            ) : null}
          </div>
        </form>
      </details>
    </section>
  );
}

interface Writing {
  app: App;
  run: RunView;
  value: (name: string) => string | null;
  write: (name: string, value: string, was: string) => void;
}

/** The requests, limits, priority, replicas and growth of one workload. */
function Workload({ app, run, chosen, value, write }: Writing & { chosen: string }) {
  const names = run.summary.workloads.map((each) => each.workload);
  // A victim is what the reader most likely wants to change.
  const name = names.includes(chosen)
    ? chosen
    : (run.summary.workloads.find((each) => each.oomKills + each.evictions > 0)?.workload ?? names[0] ?? "");
  const cluster = useAnswer<ClusterView>(app.source, { path: app.path("cluster") });
  // A workload that starts later has no pod yet: its values are unknown but can be set.
  const pods = useMemo(
    () =>
      (cluster.data?.pods ?? [])
        .map((each) => ({
          key: `${each.namespace}/${each.name}`,
          workload: each.workload.split(" ")[1] ?? "",
        }))
        .filter(
          ({ key, workload }) =>
            workload === name ||
            key === name ||
            (key.startsWith(`${name}-`) && /^\d+$/.test(key.slice(name.length + 1))),
        )
        .map(({ key }) => key),
    [cluster.data, name],
  );
  const [pod] = pods;
  const details = useAnswer<PodPage>(app.source, pod === undefined ? null : { path: podPath(app.path, pod) });
  const page =
    details.data !== null && `${details.data.namespace}/${details.data.name}` === pod ? details.data : null;
  const containers = page?.explanation.containers.filter((each) => each.type === "container") ?? [];
  const [priority, replicas, growth] = [`priority@${name}`, `replicas@${name}`, `growth@${name}`];
  return (
    <fieldset>
      <legend>Workload</legend>
      <Select
        label={`One of ${count(names.length)}`}
        value={name}
        options={names.map((each) => [each, each] as const)}
        change={(of) => change({ of }, true)}
      />
      {pod !== undefined && page === null ? (
        <Awaited answer={details} what="Reading the workload…">
          {() => null}
        </Awaited>
      ) : null}
      {containers.map((each) => (
        <Container
          key={each.name}
          container={each}
          isAlone={containers.length === 1}
          workload={name}
          value={value}
          write={write}
        />
      ))}
      <div class="row">
        <label class="field">
          <span>Priority</span>
          <input
            type="number"
            min={0}
            step={100}
            value={value(priority) ?? (page === null ? "" : String(page.explanation.priority))}
            onInput={(event) =>
              write(
                priority,
                event.currentTarget.value,
                page === null ? "" : String(page.explanation.priority),
              )
            }
          />
        </label>
        <label class="field">
          <span>Replicas</span>
          <input
            type="number"
            min={0}
            step={1}
            value={value(replicas) ?? (pods.length > 0 ? String(pods.length) : "")}
            onInput={(event) => write(replicas, event.currentTarget.value, String(pods.length))}
          />
        </label>
      </div>
      <Slider
        label="Memory growth"
        min={0}
        max={4}
        step={0.25}
        value={Number(value(growth) ?? 1)}
        toText={growthWords}
        change={(times) => write(growth, String(times), "1")}
      />
    </fieldset>
  );
}

function Container({
  container,
  isAlone,
  workload,
  value,
  write,
}: Pick<Writing, "value" | "write"> & {
  container: ContainerExplanation;
  isAlone: boolean;
  workload: string;
}) {
  const name = (side: "requests" | "limits", resource: string) =>
    `${side}.${resource}@${workload}${isAlone ? "" : `:${container.name}`}`;
  const sides = ["requests", "limits"] as const;
  const was = (side: "requests" | "limits", resource: string) => container[side][resource] ?? "";
  const largest = Math.max(
    2 ** 28,
    ...sides.flatMap((side) => [
      amountOf(was(side, "memory")) ?? 0,
      (amountOf(value(name(side, "memory")) ?? "") ?? 0) / 2,
    ]),
  );
  return (
    <>
      {isAlone ? null : <h3>{container.name}</h3>}
      {sides.map((side) => (
        <Amount
          key={side}
          label={side === "requests" ? "Memory request" : "Memory limit"}
          value={value(name(side, "memory")) ?? was(side, "memory")}
          was={was(side, "memory")}
          max={largest * 2}
          change={(next) => write(name(side, "memory"), next, was(side, "memory"))}
        />
      ))}
      <div class="row">
        {sides.map((side) => (
          <label key={side} class="field">
            <span>{side === "requests" ? "CPU request" : "CPU limit"}</span>
            <input
              value={value(name(side, "cpu")) ?? was(side, "cpu")}
              placeholder="none"
              spellcheck={false}
              autocomplete="off"
              onInput={(event) => write(name(side, "cpu"), event.currentTarget.value, was(side, "cpu"))}
            />
          </label>
        ))}
      </div>
    </>
  );
}

/** Settings of the whole run: the kubelets' thresholds and the duration. */
function Whole({ app, run, value, write }: Writing) {
  const cluster = useAnswer<ClusterView>(app.source, { path: app.path("cluster") });
  const [first] = cluster.data?.nodes ?? [];
  const threshold = first === undefined ? "" : bytes(first.thresholdBytes);
  const soft = "kubelet.evictionSoft.memory.available";
  const grace = "kubelet.evictionSoftGracePeriod.memory.available";
  const seconds = `${run.endUs / 1e6}s`;
  return (
    <fieldset>
      <legend>Kubelet and duration</legend>
      <Amount
        label="Hard threshold (memory.available)"
        value={value(HARD) ?? threshold}
        was={threshold}
        max={Math.max((first?.memoryBytes ?? 2 ** 33) / 8, amountOf(value(HARD) ?? "") ?? 0)}
        change={(next) => write(HARD, next, threshold)}
      />
      <div class="row">
        <label class="field">
          <span>Soft threshold</span>
          <input
            value={value(soft) ?? ""}
            placeholder="unchanged"
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => write(soft, event.currentTarget.value, "")}
          />
        </label>
        <label class="field">
          <span>Grace period</span>
          <input
            value={value(grace) ?? ""}
            placeholder="1m30s"
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => write(grace, event.currentTarget.value, "")}
          />
        </label>
        <label class="field">
          <span>Duration</span>
          <input
            value={value(DURATION) ?? seconds}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => write(DURATION, event.currentTarget.value, seconds)}
          />
        </label>
      </div>
    </fieldset>
  );
}

function growthWords(times: number): string {
  if (times === 1) return "as in the scenario";
  return times === 0 ? "none" : `${times} × as much`;
}

/** Quoted for a shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
