// The page of a run: the picture and its controls, the victims, both orders, the workloads, the journal.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { count, time, victims } from "../../format";
import { isTyping } from "../../frame";
import type { RunView } from "../../schema";
import { Theme } from "../theme";
import { Chip, Page } from "../ui";
import { Journal } from "./journal";
import { Kills } from "./kills";
import { Orders } from "./orders";
import { Picture } from "./picture";
import { Range, Scrubber, usePlayer, type Player } from "./scrubber";
import { useLooking, State } from "./state";
import { CpuTable, cpuRows, Services, Tiles, Workloads } from "./summary";

const CLASSES = ["Guaranteed", "Burstable", "BestEffort"] as const;
const KEYS =
  "Keys: p play or pause · ← → move the cursor (Shift: further) · j k next and previous victim · " +
  "z zoom to the victims or show all · t toggle dark mode · drag to zoom, double-click to reset.";

export function RunReport({ run }: { run: RunView }) {
  const state = useMemo(() => {
    const hit = run.nodes.find((node) => run.kills.some((kill) => kill.node === node.name));
    const node = hit ?? run.nodes[0];
    return node === undefined ? null : new State(run, node);
  }, [run]);
  const facts = [
    time(run.endUs, 1e6),
    `seed ${run.seed}`,
    `Kubernetes ${run.kubernetesVersion}`,
    `${run.policy} ranking`,
  ];
  const tools = (
    <>
      {state === null || run.nodes.length < 2 ? null : <NodeSelector state={state} />}
      <Theme />
    </>
  );
  const heading = { title: run.name, facts, description: run.description, headline: run.headline, tools };
  return (
    <Page {...heading} tiles={<Tiles run={run} />}>
      {state === null ? (
        <Section id="workloads" title="Workloads" kind="wide">
          <Workloads run={run} />
        </Section>
      ) : (
        <Shown state={state} />
      )}
    </Page>
  );
}

interface SectionProps {
  id: string;
  title: string;
  kind: string;
  children: ComponentChildren;
}

function Section({ id, title, kind, children }: SectionProps) {
  return (
    <section class={`card ${kind}`} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

function NodeSelector({ state }: { state: State }) {
  const { run } = state;
  const { node } = useLooking(state, "node");
  const left = run.summary.nodes - run.nodes.length;
  const choose = (index: number) => {
    const chosen = run.nodes[index];
    if (chosen !== undefined) state.showNode(chosen);
  };
  return (
    <label>
      {"Node "}
      <select
        id="node"
        value={run.nodes.indexOf(node)}
        onChange={(event) => choose(Number(event.currentTarget.value))}
      >
        {run.nodes.map(({ name }, index) => {
          const ended = victims(run.kills.filter((kill) => kill.node === name).map((kill) => kill.by));
          return (
            <option key={name} value={index}>
              {ended ? `${name} (${ended})` : name}
            </option>
          );
        })}
      </select>
      {left > 0 ? <span class="quiet">{` and ${count(left)} more in the summary`}</span> : null}
    </label>
  );
}

function Shown({ state }: { state: State }) {
  const { run } = state;
  const player = usePlayer(state);
  useKeys(state, player);
  const slowed = cpuRows(run);
  const services = run.summary.services ?? [];
  return (
    <>
      <div class="column">
        <section class="card picture" aria-label="Charts">
          <div class="over">
            <Legend run={run} />
            <Range state={state} />
          </div>
          <Picture state={state} />
          <Scrubber state={state} player={player} />
          <LeftOut state={state} />
        </section>
        <Section id="workloads" title="Workloads" kind="workloads">
          <Workloads run={run} />
        </Section>
        {slowed.length === 0 ? null : (
          <Section id="cpu" title="CPU" kind="workloads">
            <CpuTable rows={slowed} />
          </Section>
        )}
        {services.length === 0 ? null : (
          <Section id="services" title="Services (a model)" kind="workloads">
            <Services rows={services} />
          </Section>
        )}
        <Section id="journal" title="Journal" kind="journal-card">
          <Journal state={state} />
        </Section>
      </div>
      <aside class="column">
        <Kills state={state} />
        <Section id="orders" title="Eviction order and OOM kill order" kind="next">
          <Orders state={state} />
        </Section>
      </aside>
      <footer class="quiet">{KEYS}</footer>
    </>
  );
}

function Legend({ run }: { run: RunView }) {
  const isCached = run.nodes.some((node) =>
    node.pods.some((pod) => pod.activeFileBytes.some(Boolean) || pod.inactiveFileBytes.some(Boolean)),
  );
  const isKilled = run.kills.some((kill) => kill.by === "kernel");
  const isEvicted = run.kills.some((kill) => kill.by !== "kernel");
  return (
    <p class="legend">
      {CLASSES.filter((name) => run.pods.some((pod) => pod.qosClass === name)).map((name) => (
        <Chip key={name} qosClass={name} />
      ))}
      {isKilled ? <span class="sign kernel">◆ killed by the kernel</span> : null}
      {isEvicted ? <span class="sign kubelet">● evicted by the kubelet</span> : null}
      {isCached ? <span class="quiet">hatched: page cache</span> : null}
    </p>
  );
}

/** Which panels are left out because nothing happens there, with an offer to draw them. */
function LeftOut({ state }: { state: State }) {
  const { node, all } = useLooking(state, "node", "all");
  const picture = state.run.pictures.find((each) => each.node === node.name);
  const hidden = picture?.panels.filter((panel) => panel.isHidden) ?? [];
  if (hidden.length === 0) return null;
  const names = hidden
    .map((panel) => panel.hiddenAs)
    .filter(Boolean)
    .join(", ");
  return (
    <p class="quiet out">
      {all ? "Panels without events are shown. " : `Hidden because nothing happens there: ${names}. `}
      <button type="button" class="link" onClick={() => state.change({ all: !all })}>
        {all ? "Hide them" : "Show them"}
      </button>
    </p>
  );
}

/** Let keys move the cursor and choose victims. */
function useKeys(state: State, player: Player): void {
  const latest = useRef(player);
  latest.current = player;
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      // The slider has its own ideas of these keys.
      if (event.target instanceof HTMLInputElement && /^(Arrow|Home|End)/.test(event.key)) return;
      const { fromUs, toUs, timeUs } = state.now;
      const step = ((toUs - fromUs) / 200) * (event.shiftKey ? 10 : 1);
      const keys: Record<string, () => void> = {
        ArrowLeft: () => state.moveTo(timeUs - step),
        ArrowRight: () => state.moveTo(timeUs + step),
        Home: () => state.moveTo(fromUs),
        End: () => state.moveTo(toUs),
        j: () => state.stepKill(1),
        k: () => state.stepKill(-1),
        z: () => state.toggleZoom(),
        p: () => latest.current.toggle(),
      };
      const action = keys[event.key];
      if (action === undefined) return;
      event.preventDefault();
      action();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [state]);
}
