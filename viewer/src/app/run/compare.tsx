// Two runs side by side, with what differs marked.

import { useMemo } from "preact/hooks";
import { count, duration, plural, time } from "../../format";
import type { CompareView, RunSummary, RunView } from "../../schema";
import { href } from "../router";
import { useAnswer } from "../source";
import { Awaited, Card, Empty, Page, Tile } from "../ui";
import type { ViewProps } from "../view";
import { Ends, Workloads } from "./differences";
import { nameOf, Progress, useJob, useRuns } from "./jobs";
import { Picture } from "./picture";
import { State } from "./state";

export function ComparePage({ route, app }: ViewProps) {
  const [before = "", after = ""] = route.parts;
  const jobs = [
    useJob<RunView>(app.source, after ? before : null),
    useJob<RunView>(app.source, after || null),
  ] as const;
  const [first, second] = [jobs[0].result, jobs[1].result];
  const view = useAnswer<CompareView>(
    app.source,
    first === null || second === null
      ? null
      : { path: `/api/compare?before=${encodeURIComponent(before)}&after=${encodeURIComponent(after)}` },
  );
  const [one, ...others] = (useRuns(app) ?? []).filter((each) => each.state === "done");
  if (!after) {
    return (
      <Page title="Compare">
        <div class="wide">
          <Empty title="Which two runs?">
            {one === undefined || others.length === 0 ? (
              <p>
                <a href={href("run")}>Run the scenario</a>, then run it again with other values. Any two runs
                can be compared.
              </p>
            ) : (
              <p class="runs-done">
                {`${nameOf(one)}, and:`}
                {others.map((each) => (
                  <a key={each.id} href={href("compare", [one.id, each.id])}>
                    {nameOf(each)}
                  </a>
                ))}
              </p>
            )}
          </Empty>
        </div>
      </Page>
    );
  }
  if (first === null || second === null || view.data === null || view.failure !== null) {
    const awaited = jobs.find((each) => each.result === null);
    return (
      <Page title="Compare" tools={<a href={href("run", [before])}>← Earlier run</a>}>
        <div class="wide">
          {awaited === undefined ? (
            <Awaited answer={view} what="Comparing…">
              {() => null}
            </Awaited>
          ) : (
            <Progress job={awaited} what="Simulating" />
          )}
        </div>
      </Page>
    );
  }
  return <Shown view={view.data} runs={[first, second]} ids={[before, after]} />;
}

interface ShownProps {
  view: CompareView;
  runs: readonly [RunView, RunView];
  ids: readonly [string, string];
}

function Shown({ view, runs, ids }: ShownProps) {
  const { before, after } = view;
  const was = (one: number, other: number) => (one === other ? "unchanged" : `was ${count(one)}`);
  const endUs = Math.max(runs[0].endUs, runs[1].endUs);
  const only = useMemo(
    () =>
      [
        new Set(view.deaths.filter((each) => each.after === null).map((each) => each.before)),
        new Set(view.deaths.filter((each) => each.before === null).map((each) => each.after)),
      ] as const,
    [view],
  );
  const looks = useMemo(() => beside([runs[0], inColoursOf(runs[0], runs[1])]), [runs[0], runs[1]]);
  return (
    <Page
      title="Compare"
      facts={[...new Set([view.beforeName, view.afterName]), time(endUs, 1e6)]}
      headline={view.headline}
      tools={<a href={href("run", [ids[1]])}>← Later run</a>}
      tiles={
        <>
          <Tile
            value={count(after.oomKills)}
            name="killed by the kernel"
            note={was(before.oomKills, after.oomKills)}
            kind={after.oomKills > 0 ? "kernel" : ""}
          />
          <Tile
            value={count(after.evictions)}
            name="evicted by the kubelet"
            note={was(before.evictions, after.evictions)}
            kind={after.evictions > 0 ? "kubelet" : ""}
          />
          <Tile
            value={`${count(after.untouched)}/${count(after.pods)}`}
            name="pods unaffected"
            note={
              before.pods === after.pods
                ? was(before.untouched, after.untouched)
                : `was ${count(before.untouched)}/${count(before.pods)}`
            }
          />
          {shortOfCpu(before) + shortOfCpu(after) > 0 ? (
            <Tile
              value={count(shortOfCpu(after))}
              name={shortOfCpu(after) === 1 ? "pod short of CPU" : "pods short of CPU"}
              note={was(shortOfCpu(before), shortOfCpu(after))}
            />
          ) : null}
          <Tile
            value={duration(after.downtimeUs)}
            name="downtime"
            note={before.downtimeUs === after.downtimeUs ? "unchanged" : `was ${duration(before.downtimeUs)}`}
          />
        </>
      }
    >
      <div class="sides">
        {(["Before", "After"] as const).map((title, index) => (
          <Side
            key={title}
            title={title}
            run={runs[index] as RunView}
            look={looks[index] ?? null}
            id={ids[index] as string}
            only={only[index] as ReadonlySet<number | null>}
          />
        ))}
      </div>
      <Card title="Killed and evicted">
        <Ends view={view} runs={runs} />
      </Card>
      <Card title="Workloads">
        <Workloads view={view} />
      </Card>
    </Page>
  );
}

/** A pod whose class was changed has its earlier colour in both runs: the reader looks for the same one. */
function inColoursOf(before: RunView, after: RunView): RunView {
  const colours = new Map(before.pods.map((pod) => [pod.key, pod.colour]));
  return {
    ...after,
    pods: after.pods.map((pod) => ({ ...pod, colour: colours.get(pod.key) ?? pod.colour })),
  };
}

/** How many pods got less CPU than they wanted at some time, whatever else happened to them. */
function shortOfCpu(summary: RunSummary): number {
  return summary.cpu?.slowed ?? summary.throttled;
}

/** Both runs at the node of the first victim and over the same time, so that they line up. */
function beside(runs: readonly RunView[]): (State | null)[] {
  const hit = runs.flatMap((run) => run.kills.map((kill) => kill.node))[0];
  const looks = runs.map((run) => {
    const node = run.nodes.find((each) => each.name === hit) ?? run.nodes[0];
    return node === undefined ? null : new State(run, node);
  });
  const ends = looks.flatMap((look) => (look === null || look.kills.length === 0 ? [] : [look.now.toUs]));
  const toUs = Math.max(...ends);
  if (ends.length === 0) return looks;
  for (const look of looks) look?.change({ fromUs: 0, toUs: Math.min(toUs, look.run.endUs) });
  return looks;
}

interface SideProps {
  title: string;
  run: RunView;
  look: State | null;
  id: string;
  /** The kills that the other run does not have. */
  only: ReadonlySet<number | null>;
}

function Side({ title, run, look, id, only }: SideProps) {
  const node = look?.now.node;
  const own = run.kills.map((_, index) => index).filter((index) => only.has(index));
  const nodes = run.nodes.length > 1 ? ` of ${plural(run.nodes.length, "node")}` : "";
  const alone = own.length > 0 ? `; only here: ${own.map((index) => index + 1).join(", ")}` : "";
  return (
    <section class="card" aria-label={`${title}: ${run.name}`}>
      <div class="card-head">
        <h2>{`${title}: ${plural(run.summary.oomKills + run.summary.evictions, "victim")}`}</h2>
        <a href={href("run", [id])}>Full run</a>
      </div>
      <p class="quiet">{`${node?.name ?? "no node"}${nodes}${alone}`}</p>
      {look === null ? null : <Picture state={look} />}
    </section>
  );
}
