// The answer on top of the cluster view: who dies first and why, kubelet or kernel, and the safest fix. All
// words come from the server; what takes longer to compute than the view itself is asked for afterwards.

import { useLayoutEffect, useRef } from "preact/hooks";
import { about, plural } from "../../format";
import type { AnswerFix, AnswerView, ClusterView, GrowthAnswer, NextDeath, NodePanel } from "../../schema";
import { tryAddress } from "../fixes";
import { leftOn, leftText } from "../headroom";
import { href } from "../router";
import { useAnswer } from "../source";
import { Swatch } from "../swatch";
import { Key, toast } from "../ui";
import type { App } from "../view";
import "./answer.css";

export function AnswerCard({ app, view, node }: { app: App; view: ClusterView; node: string | null }) {
  const name = node ?? view.nextDeaths[0]?.node;
  const panel = view.nodes.find((each) => each.name === name);
  const isRanked = panel !== undefined && (panel.nextEvicted !== null || panel.nextKilled !== null);
  const path = node === null ? "answer" : `answer?node=${encodeURIComponent(node)}`;
  const isServed = app.source.saved === null;
  const answer = useAnswer<AnswerView>(app.source, isRanked ? { path: app.path(path) } : null);
  const found = answer.data !== null && answer.data.node === panel?.name ? answer.data : null;
  const isComing = found === null && answer.failure === null;
  // What is below stays where it is once the rest has come, also if that needs less room.
  const facts = useRef<HTMLDListElement>(null);
  const height = useRef(0);
  useLayoutEffect(() => {
    if (isComing) height.current = facts.current?.offsetHeight ?? 0;
  });
  if (!isRanked) return null;
  const { nextEvicted, nextKilled } = panel;
  return (
    <section class="card answer" aria-label="Answer">
      <div class="answer-head">
        <h2>Who dies first?</h2>
        <p class="quiet" title={panel.name}>{whereOf(panel, view.nodes.length, node)}</p>
      </div>
      <dl class="answer-facts" ref={facts} style={isComing ? {} : { minHeight: `${height.current}px` }}>
        <First kind="kubelet" title="Evicted first" victim={nextEvicted} none="The kubelet evicts none." />
        <First kind="kernel" title="OOM-killed first" victim={nextKilled} none="No container is running." />
        {isComing ? <Coming title="Who acts first" lines={2} /> : null}
        {found?.growth ? <Race growth={found.growth} node={panel.name} isServed={isServed} /> : null}
        {isComing ? <Coming title="Safest fix" lines={4} /> : null}
        {found?.fix ? <Fix fix={found.fix} view={view} canTry={isServed} /> : null}
        {found !== null && found.noFix !== "" ? (
          <NoFix of={found} view={view} canTry={isServed} />
        ) : null}
        {isComing && !panel.isMeasured ? <Coming title="Not known" lines={2} /> : null}
        {found !== null && found.unknowns.length > 0 ? <Unknowns of={found.unknowns} /> : null}
      </dl>
      {node === null && view.nextDeaths.length > 1 ? (
        <Next deaths={view.nextDeaths} nodes={view.nodes.length} />
      ) : null}
    </section>
  );
}

/** The node and what is left on it, by whichever of kubelet and kernel has less. */
function whereOf(panel: NodePanel, nodes: number, node: string | null): string {
  const name = panel.name === "" ? "one assumed node" : panel.name;
  const which = nodes > 1 && node === null ? `${name}, the node with the least headroom` : name;
  const left = leftOn(panel);
  return left === null ? which : `${which}: ${leftText(left)}`;
}

function PodLink({ of, qosClass }: { of: string; qosClass: string | null }) {
  const [namespace = "", name = ""] = of.split("/");
  return (
    <>
      <Swatch pod={of} qosClass={qosClass} />{" "}
      <a href={href("pod", [namespace, name])} title={of}>
        <Key of={of} />
      </a>
    </>
  );
}

type Victim = NodePanel["nextEvicted"];

function First(props: { kind: string; title: string; victim: Victim; none: string }) {
  const { kind, title, victim, none } = props;
  return (
    <div class={kind}>
      <dt>{title}</dt>
      <dd>
        {victim === null ? (
          none
        ) : (
          <>
            <PodLink of={victim.pod} qosClass={victim.qosClass} />: {victim.explanation}.
          </>
        )}
      </dd>
    </div>
  );
}

/** Where an answer comes in a moment: as high as a usual one, so that nothing below is pushed away. */
function Coming({ title, lines }: { title: string; lines: number }) {
  return (
    <div class="quiet coming" style={{ "--lines": lines }}>
      <dt>{title}</dt>
      <dd>Computing…</dd>
    </div>
  );
}

/** Whether kubelet or kernel acts first, as the forecast says; a saved page may not have that. */
function Race({ growth, node, isServed }: { growth: GrowthAnswer; node: string; isServed: boolean }) {
  return (
    <div class="answer-race">
      <dt>Who acts first</dt>
      <dd>
        {growth.text} <span class="quiet">{growth.verdict}</span>{" "}
        {isServed ? <a href={href("forecast", [], { growing: growth.growing, node })}>Forecast</a> : null}
      </dd>
    </div>
  );
}

/** The fix; a saved page cannot try it. */
function Fix({ fix, view, canTry }: { fix: AnswerFix; view: ClusterView; canTry: boolean }) {
  const { edit, copied } = fix;
  const workload = workloadOf(fix.pod, view);
  const text = useRef<HTMLPreElement>(null);
  const details = useRef<HTMLDetailsElement>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(copied);
      toast(fix.isCommand ? "Copied: the kubectl command." : "Copied: the lines to write.");
    } catch {
      // No clipboard, for example in a file: at least show and select the text.
      if (details.current !== null) details.current.open = true;
      if (text.current !== null) getSelection()?.selectAllChildren(text.current);
      toast("Selected: press Ctrl+C to copy.");
    }
  };
  return (
    <div class="answer-fix">
      <dt>Safest fix</dt>
      <dd>
        <b>{edit.remedy?.change ?? edit.change}</b> in {edit.target}. {edit.then}
        {edit.remedy !== null && edit.remedy.costs.length > 0 ? (
          <span class="quiet"> Cost: {edit.remedy.costs.join("; ")}.</span>
        ) : null}
        <span class="answer-tools">
          {copied === "" ? null : (
            <button type="button" class="tool" onClick={copy}>
              {fix.isCommand ? "Copy kubectl command" : "Copy YAML"}
            </button>
          )}
          {canTry ? (
            <a class="tool" href={tryAddress(edit.tries, workload)}>
              Try it
            </a>
          ) : null}
          {copied === "" ? null : (
            <details ref={details}>
              <summary>{fix.isCommand ? "Show the command" : "Show the lines"}</summary>
              <pre ref={text} tabIndex={0} aria-label="The fix">
                {copied}
              </pre>
            </details>
          )}
        </span>
      </dd>
    </div>
  );
}

/** Why there is no fix; what protects at a price that podqos does not choose can still be tried. */
function NoFix({ of, view, canTry }: { of: AnswerView; view: ClusterView; canTry: boolean }) {
  const tries = of.withheld?.tries ?? [];
  const [first] = tries;
  return (
    <div class="answer-fix">
      <dt>Safest fix</dt>
      <dd>
        {of.noFix}
        {canTry && first !== undefined ? (
          <span class="answer-tools">
            <a class="tool" href={tryAddress(tries, workloadOf(first.pod, view))}>
              Try it anyway
            </a>
          </span>
        ) : null}
      </dd>
    </div>
  );
}

function workloadOf(pod: string, view: ClusterView): string {
  return view.pods.find((each) => `${each.namespace}/${each.name}` === pod)?.workload ?? "";
}

/** What is assumed, and how to replace the assumption. */
function Unknowns({ of }: { of: AnswerView["unknowns"] }) {
  return (
    <div class="answer-unknown">
      <dt>Not known</dt>
      <dd>
        <details>
          <summary>{of.map((each) => each.text).join(" ")}</summary>
          <ul class="reasons">
            {of.map((each) => (
              <li key={each.text}>{each.how || each.text}</li>
            ))}
          </ul>
        </details>
      </dd>
    </div>
  );
}

const LEFT: Readonly<Record<string, string>> = {
  kernel: "headroom before an OOM kill",
  kubelet: "headroom before eviction",
};

/** The next pods to die, on the nodes with the least headroom. */
function Next({ deaths, nodes }: { deaths: readonly NextDeath[]; nodes: number }) {
  const of = nodes > deaths.length ? ` (of ${plural(nodes, "node")})` : "";
  return (
    <details class="answer-next" open>
      <summary>{`The next ${deaths.length} to die, one per node${of}`}</summary>
      <ol>
        {deaths.map((each) => (
          <li key={`${each.node} ${each.pod}`} class={each.by}>
            <span class="answer-left" title={LEFT[each.by]}>
              {each.headroomBytes < 0 ? "now" : about(each.headroomBytes)}
            </span>
            <span class="answer-pod">
              <PodLink of={each.pod} qosClass={each.qosClass} />{" "}
              <span class="quiet">{each.by === "kernel" ? "OOM-killed" : "evicted"}</span>
            </span>
            <a class="answer-node" href={href("cluster", [], { node: each.node })}>
              {each.node}
            </a>
            <span class="answer-why quiet">{each.explanation}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}
