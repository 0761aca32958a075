// What each pod would take down if it leaked, the most dangerous first: the page of `podqos blast`, and the
// view of the app.

import type { ComponentChildren } from "preact";
import { bytes, count, plural } from "../../format";
import type { BlastRadius } from "../../schema";
import { Card, howToState, Key, Page } from "../ui";
import { Leaks } from "./leaks";
import { harmful } from "./model";
import { Story } from "./story";
import { Tiles } from "./tiles";
import "./blast.css";

const MOST = 200;
const DESCRIPTION =
  "If a pod leaks memory: which other pods on its node are OOM-killed or evicted, in what order, how soon, " +
  "and why.";
const FOOTER =
  "Each leak is simulated on its own node, from its current state until the leaking pod itself is " +
  "OOM-killed or evicted. CPU is not simulated: contention slows pods down but kills none. " +
  "Keys: t toggles dark mode.";

interface ReportProps {
  radius: BlastRadius;
  /** Next to the title. */
  tools?: ComponentChildren;
  /** At most so many leaks are shown one by one; `all` says what has the others. */
  most?: number;
  all?: string;
  /** How an option is called here that would state an assumption. */
  stated?: (words: string) => string;
  /** Above the list of leaks, instead of the most dangerous one. */
  children?: ComponentChildren;
}

export function BlastReport(props: ReportProps) {
  const { radius, tools, most = MOST, all = "use -o csv to see all", children } = props;
  const stated = props.stated ?? ((words) => words);
  const [slow, fast] = [bytes(radius.slowBytesPerSecond), bytes(radius.fastBytesPerSecond)];
  const rates = `leaks of ${slow}/s (slow) and ${fast}/s (fast)`;
  const [worst] = harmful(radius);
  return (
    <Page
      title="Blast radius"
      facts={[plural(radius.nodes, "node"), plural(radius.pods, "pod"), rates]}
      description={DESCRIPTION}
      headline={radius.headline}
      tiles={<Tiles radius={radius} />}
      tools={tools}
    >
      {children ?? (worst === undefined ? null : <Story leak={worst} isWorst />)}
      <EvictedBefore radius={radius} />
      <Leaks radius={radius} most={most} all={all} />
      {radius.assumptions.length === 0 ? null : (
        <Card id="assumed" title="Assumed">
          <ul class="reasons">
            {radius.assumptions.map(({ what, value, stateWith }) => (
              <li key={what}>{`${what}: ${value} (${howToState(stateWith, stated)})`}</li>
            ))}
          </ul>
        </Card>
      )}
      <footer class="quiet">{FOOTER}</footer>
    </Page>
  );
}

/** Pods that the kubelet evicts without any leak. */
function EvictedBefore({ radius }: { radius: BlastRadius }) {
  const evicted = radius.evictedBefore;
  if (evicted.length === 0) return null;
  const more = evicted.length - MOST;
  return (
    <Card id="evicted" title="Evicted without any leak">
      <ul class="reasons">
        {evicted.slice(0, MOST).map(({ pod, node }) => (
          <li key={`${node} ${pod}`}>
            <Key of={pod} /> on {node}
          </li>
        ))}
        {more > 0 ? <li>{`${count(more)} more: use -o json to see all`}</li> : null}
      </ul>
      <p class="quiet">{`Leaks start after ${evicted.length === 1 ? "it is" : "they are"} gone.`}</p>
    </Card>
  );
}
