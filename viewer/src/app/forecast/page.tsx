// The forecast: who acts first, kernel or kubelet, while a container grows; with sliders for threshold, interval and growth.

import { useMemo } from "preact/hooks";
import { about, bytes, CAUSES, seconds } from "../../format";
import type { ForecastOutcome, ForecastRequest, ForecastView } from "../../schema";
import { Amount, amountOf, Slider, useNewest } from "../controls";
import { change, href, type Route } from "../router";
import { Assumed, Card, Empty, Failed, Key, Loading, Page, Table, Tile } from "../ui";
import type { App, ViewProps } from "../view";
import { Curve, percent } from "./curve";
import "./forecast.css";

const [LEAST_EXPONENT, MOST_EXPONENT] = [20, 33];
const USUAL_INTERVAL = 10;

function asked(route: Route): ForecastRequest {
  const get = (name: string) => route.query.get(name) ?? "";
  const rate = Number(get("rate"));
  const interval = Number(get("interval"));
  return {
    growing: get("growing"),
    node: get("node"),
    kubelet: { evictionHard: get("hard"), evictionSoft: get("soft"), evictionSoftGracePeriod: get("grace"), systemReserved: "", kubeReserved: "" },
    intervalSeconds: interval > 0 ? interval : USUAL_INTERVAL,
    rateBytesPerSecond: rate >= 1 ? Math.round(rate) : 2 ** 27,
    fastPath: get("fast") === "1",
  };
}

export function ForecastPage({ route, app }: ViewProps) {
  const request = asked(route);
  const key = JSON.stringify(request);
  const question = useMemo(() => ({ path: app.path("forecast"), body: JSON.parse(key) as ForecastRequest }), [app, key]);
  const answer = useNewest<ForecastView>(app.source, question);
  const view = answer.data;
  if (view === null) {
    return (
      <Page title="Forecast">
        <div class="wide">{answer.failure === null ? <Loading what="Computing the forecast…" /> : <Failed failure={answer.failure} />}</div>
      </Page>
    );
  }
  return <Shown app={app} view={view} request={request} failure={answer.failure?.message ?? ""} isCurrent={answer.isCurrent} isLate={answer.isLate} />;
}

function Shown({ app, view, request, failure, isCurrent, isLate }: { app: App; view: ForecastView; request: ForecastRequest; failure: string; isCurrent: boolean; isLate: boolean }) {
  const growth = view.report.growths[0];
  const memory = view.report.nodeMemoryBytes;
  const isSaved = app.source.saved !== null;
  if (growth === undefined) return <Page title="Forecast"><Empty title="No container to grow" /></Page>;
  const { needed } = growth;
  const lines = [
    { name: "Current settings", kind: "was" as const, points: view.asItIs },
    { name: "With these settings", kind: "now" as const, points: view.report.curve },
  ];
  return (
    <Page
      title="Forecast"
      facts={[...(view.node ? [view.node] : []), `${bytes(memory)} memory`, `Kubernetes ${view.report.kubernetesVersion}`]}
      description="A container's memory grows steadily. The kubelet checks its thresholds at intervals; the kernel kills when memory runs out. Which one acts first?"
      headline={`If ${growth.pod} grows by ${bytes(growth.rateBytesPerSecond)}/s, the kubelet acts first in ${percent(growth.kubeletFirst)} of cases.`}
      tiles={
        <>
          <Tile value={percent(growth.kubeletFirst)} name="kubelet first" note={`checks every ${request.intervalSeconds} s`} kind="kubelet" />
          <Tile value={percent(1 - growth.kubeletFirst)} name="kernel first" note={CAUSES[growth.outOfMemory] ?? ""} kind={growth.kubeletFirst < 1 ? "kernel" : ""} />
          <Tile value={seconds(growth.outOfMemoryAfterSeconds)} name="until an OOM kill" />
          <Tile value={about(view.availableBytes)} name="available at the start" />
          <Tile value={bytes(view.thresholdBytes)} name="hard threshold" />
        </>
      }
    >
      <div class={`column ${isLate && !isSaved ? "stale-answer" : ""}`} aria-busy={!isCurrent}>
        <Card title="Probability that the kubelet acts first">
          <Curve lines={lines} rate={growth.rateBytesPerSecond} {...(isSaved ? {} : { choose: (rate: number) => change({ rate: rounded(Math.max(2 ** LEAST_EXPONENT, rate)) }, true) })} />
        </Card>
        <Card title={`At ${bytes(growth.rateBytesPerSecond)}/s`}>
          <p>{view.race}</p>
          <Table<ForecastOutcome>
            rows={growth.outcomes}
            kind={(each) => each.by}
            columns={[
              { name: "What happens", cell: (each) => each.text },
              { name: "Victim", cell: (each) => <a href={href("pod", each.pod.split("/"))}><Key of={each.pod} /></a> },
              { name: "Probability", number: true, cell: (each) => percent(each.probability) },
              { name: "When", number: true, cell: (each) => span(each.earliestSeconds, each.latestSeconds) },
              { name: "Stops the growth", cell: (each) => (each.endsGrowth ? "yes" : "no, it hits another pod") },
            ]}
          />
          {needed === null ? null : (
            <p class="needed">
              {needed.text}
              {needed.evictionHardBytes !== null && needed.impractical === null ? (
                <>
                  {" "}
                  <button type="button" class="link" disabled={isSaved} onClick={() => change({ hard: bytes(needed.evictionHardBytes ?? 0) })}>
                    {`Try ${bytes(needed.evictionHardBytes)}`}
                  </button>
                </>
              ) : null}
            </p>
          )}
        </Card>
      </div>
      <aside class="column turned">
        <Card title="Settings" kind="controls">
          <fieldset class="all-controls" disabled={isSaved}>
            <label class="field">
              <span>Growing container</span>
              <select value={view.growing} onChange={(event) => change({ growing: event.currentTarget.value })}>
                {[...new Set([view.growing, ...view.choices])].map((each) => (
                  <option key={each} value={each} selected={each === view.growing}>
                    {each}
                  </option>
                ))}
              </select>
            </label>
            <Slider label="Growth" min={LEAST_EXPONENT} max={MOST_EXPONENT} step={0.25} value={Math.log2(request.rateBytesPerSecond)} toText={(value) => `${bytes(rounded(2 ** value))}/s`} change={(value) => change({ rate: rounded(2 ** value) }, true)} />
            <Amount label="Hard threshold (memory.available)" value={request.kubelet.evictionHard || bytes(view.thresholdBytes)} max={Math.max(memory / 8, amountOf(request.kubelet.evictionHard) ?? 0)} change={(hard) => change({ hard }, true)} />
            <Slider label="The kubelet checks every" min={1} max={60} step={1} value={request.intervalSeconds} toText={(value) => `${value} s`} change={(interval) => change({ interval: interval === USUAL_INTERVAL ? null : interval }, true)} />
            <div class="row">
              <label class="field">
                <span>Soft threshold</span>
                <input value={request.kubelet.evictionSoft} placeholder="none" spellcheck={false} onInput={(event) => change({ soft: event.currentTarget.value }, true)} />
              </label>
              <label class="field">
                <span>Grace period</span>
                <input value={request.kubelet.evictionSoftGracePeriod} placeholder="1m30s" spellcheck={false} onInput={(event) => change({ grace: event.currentTarget.value }, true)} />
              </label>
            </div>
            <label class="check">
              <input type="checkbox" checked={request.fastPath} onChange={(event) => change({ fast: event.currentTarget.checked ? "1" : null })} />
              the kernel notifies the kubelet as soon as a threshold is crossed (as podqos node does)
            </label>
            {failure ? (
              <p class="refused" role="alert">
                {failure}
              </p>
            ) : null}
            <button type="button" class="tool" onClick={() => change({ hard: null, soft: null, grace: null, interval: null, rate: null, fast: null })}>
              Reset
            </button>
          </fieldset>
        </Card>
      </aside>
      <Assumed of={view.report.assumptions} />
    </Page>
  );
}

/** A round rate. */
function rounded(rate: number): number {
  const unit = rate >= 2 ** 30 ? 2 ** 26 : 2 ** 20;
  return Math.max(unit, Math.round(rate / unit) * unit);
}

function span(from: number, to: number): string {
  const [one, other] = [seconds(from), seconds(to)];
  return one === other ? one : `${one} – ${other}`;
}

