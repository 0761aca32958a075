// The forecast: who acts first, kernel or kubelet, while a container grows; with sliders for threshold,
// interval and growth.

import { useMemo } from "preact/hooks";
import { about, bytes, seconds } from "../../format";
import type { Forecast, ForecastOutcome, ForecastRequest, ForecastView } from "../../schema";
import { Amount, amountOf, Slider, useNewest } from "../controls";
import { change, href } from "../router";
import { Assumed, Card, Empty, Failed, Key, Loading, Page, Table, Tile } from "../ui";
import type { App, ViewProps } from "../view";
import { Curve, isFlat, percent } from "./curve";
import { Race } from "./race";
import { forecastRequest, USUAL_INTERVAL } from "./request";
import { Swatch } from "../swatch";
import "./forecast.css";

const [LEAST_EXPONENT, MOST_EXPONENT] = [20, 33];

export function ForecastPage({ route, app }: ViewProps) {
  const request = forecastRequest((name) => route.query.get(name) ?? "");
  const key = JSON.stringify(request);
  const question = useMemo(
    () => ({ path: app.path("forecast"), body: JSON.parse(key) as ForecastRequest }),
    [app, key],
  );
  const answer = useNewest<ForecastView>(app.source, question);
  const view = answer.data;
  if (view === null) {
    return (
      <Page title="Forecast">
        <div class="wide">
          {answer.failure === null ? (
            <Loading what="Computing the forecast…" />
          ) : (
            <Failed failure={answer.failure} />
          )}
        </div>
      </Page>
    );
  }
  const isLate = answer.isLate && app.source.saved === null;
  return (
    <Shown
      app={app}
      view={view}
      request={request}
      failure={answer.failure?.message ?? ""}
      state={{ isCurrent: answer.isCurrent, isLate }}
    />
  );
}

interface ShownProps {
  app: App;
  view: ForecastView;
  request: ForecastRequest;
  failure: string;
  state: { isCurrent: boolean; isLate: boolean };
}

function Shown({ app, view, request, failure, state }: ShownProps) {
  const growth = view.report.growths[0];
  const isSaved = app.source.saved !== null;
  if (growth === undefined) {
    return (
      <Page title="Forecast">
        <Empty title="No container to grow" />
      </Page>
    );
  }
  const lines = [
    { name: "Current settings", kind: "was" as const, points: view.asItIs },
    { name: "With these settings", kind: "now" as const, points: view.report.curve },
  ];
  const choose = (rate: number) => change({ rate: rounded(Math.max(2 ** LEAST_EXPONENT, rate)) }, true);
  return (
    <Page
      title="Forecast"
      facts={[
        ...(view.node ? [view.node] : []),
        `${bytes(view.report.nodeMemoryBytes)} memory`,
        `Kubernetes ${view.report.kubernetesVersion}`,
      ]}
      headline={view.verdict}
      tiles={<Tiles view={view} growth={growth} interval={request.intervalSeconds} />}
    >
      <div class={`column ${state.isLate ? "stale-answer" : ""}`} aria-busy={!state.isCurrent}>
        <Card title={`Growth of ${bytes(growth.rateBytesPerSecond)}/s`}>
          <p>{view.race}</p>
          <Race growth={growth} label={`${view.race} ${view.verdict}`} />
          <Outcomes growth={growth} classes={view.classes} />
          <NeededSettings growth={growth} isSaved={isSaved} />
        </Card>
        <Card title="Who acts first, by growth rate">
          <p>{view.byRate}</p>
          {lines.every((line) => isFlat(line.points)) ? null : (
            <Curve lines={lines} rate={growth.rateBytesPerSecond} {...(isSaved ? {} : { choose })} />
          )}
        </Card>
      </div>
      <aside class="column turned">
        <Settings view={view} request={request} failure={failure} isSaved={isSaved} />
      </aside>
      <Assumed of={view.report.assumptions} />
    </Page>
  );
}

function Tiles({ view, growth, interval }: { view: ForecastView; growth: Forecast; interval: number }) {
  const first = growth.kubeletFirst;
  const likeliest = growth.outcomes.toSorted((one, other) => other.probability - one.probability)[0];
  const who = first === 1 ? "kubelet" : first === 0 ? "kernel" : `kubelet ${percent(first)}`;
  return (
    <>
      <Tile
        value={who}
        name="acts first"
        note={`the kubelet checks every ${interval} s`}
        kind={first === 1 ? "kubelet" : first === 0 ? "kernel" : "warned"}
      />
      {likeliest === undefined ? null : (
        <Tile
          value={span(likeliest.earliestSeconds, likeliest.latestSeconds)}
          name={likeliest.by === "kernel" ? "until the OOM kill" : "until the eviction"}
          note={likeliest.endsGrowth ? "of the pod that grows" : "of another pod"}
        />
      )}
      <Tile value={about(view.availableBytes)} name="available at the start" />
      <Tile value={bytes(view.thresholdBytes)} name="hard threshold" />
    </>
  );
}

function Outcomes({ growth, classes }: { growth: Forecast; classes: ForecastView["classes"] }) {
  return (
    <Table<ForecastOutcome>
      rows={growth.outcomes}
      kind={(outcome) => outcome.by}
      columns={[
        { name: "What happens", cell: act },
        {
          name: "Victim",
          cell: (outcome) => (
            <a href={href("pod", outcome.pod.split("/"))}>
              <Swatch pod={outcome.pod} qosClass={classes[outcome.pod] ?? null} />
              <Key of={outcome.pod} />
            </a>
          ),
        },
        { name: "Probability", number: true, cell: (outcome) => percent(outcome.probability) },
        {
          name: "When",
          number: true,
          cell: (outcome) => span(outcome.earliestSeconds, outcome.latestSeconds),
        },
        {
          name: "Stops the growth",
          cell: (outcome) => (outcome.endsGrowth ? "yes" : "no, it hits another pod"),
        },
      ]}
    />
  );
}

/** A row of the table has the victim and the time in columns of their own. */
function act(outcome: ForecastOutcome): string {
  const { signal, thresholdType } = outcome;
  if (outcome.by !== "kernel") return `● evicted by the kubelet for ${signal} (${thresholdType})`;
  return `◆ OOM-killed by the kernel: ${outcome.container}, oom_score_adj ${outcome.oomScoreAdj}`;
}

function NeededSettings({ growth: { needed }, isSaved }: { growth: Forecast; isSaved: boolean }) {
  if (needed === null) return null;
  const hard = needed.impractical === null ? needed.evictionHardBytes : null;
  return (
    <p class="needed">
      {needed.text}{" "}
      {hard === null ? null : (
        <button type="button" class="link" disabled={isSaved} onClick={() => change({ hard: bytes(hard) })}>
          {`Try ${bytes(hard)}`}
        </button>
      )}
    </p>
  );
}

type SettingsProps = Pick<ShownProps, "view" | "request" | "failure"> & { isSaved: boolean };

function Settings({ view, request, failure, isSaved }: SettingsProps) {
  const { kubelet } = request;
  const memory = view.report.nodeMemoryBytes;
  const reset = { hard: null, soft: null, grace: null, interval: null, rate: null, fast: null };
  return (
    <Card title="Settings" kind="controls">
      <fieldset class="all-controls" disabled={isSaved}>
        <label class="field">
          <span>Growing container</span>
          <select value={view.growing} onChange={(event) => change({ growing: event.currentTarget.value })}>
            {[...new Set([view.growing, ...view.choices])].map((name) => (
              <option key={name} value={name} selected={name === view.growing}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {view.chosen ? <p class="quiet">{view.chosen}</p> : null}
        <Slider
          label="Growth"
          min={LEAST_EXPONENT}
          max={MOST_EXPONENT}
          step={0.25}
          value={Math.log2(request.rateBytesPerSecond)}
          toText={(value) => `${bytes(rounded(2 ** value))}/s`}
          change={(value) => change({ rate: rounded(2 ** value) }, true)}
        />
        <Amount
          label="Hard threshold (memory.available)"
          value={kubelet.evictionHard || bytes(view.thresholdBytes)}
          max={Math.max(memory / 8, amountOf(kubelet.evictionHard) ?? 0)}
          change={(hard) => change({ hard }, true)}
        />
        <Slider
          label="The kubelet checks every"
          min={1}
          max={60}
          step={1}
          value={request.intervalSeconds}
          toText={(value) => `${value} s`}
          change={(interval) => change({ interval: interval === USUAL_INTERVAL ? null : interval }, true)}
        />
        <div class="row">
          <label class="field">
            <span>Soft threshold</span>
            <input
              value={kubelet.evictionSoft}
              placeholder="none"
              spellcheck={false}
              onInput={(event) => change({ soft: event.currentTarget.value }, true)}
            />
          </label>
          <label class="field">
            <span>Grace period</span>
            <input
              value={kubelet.evictionSoftGracePeriod}
              placeholder="1m30s"
              spellcheck={false}
              onInput={(event) => change({ grace: event.currentTarget.value }, true)}
            />
          </label>
        </div>
        <label class="check">
          <input
            type="checkbox"
            checked={request.fastPath}
            onChange={(event) => change({ fast: event.currentTarget.checked ? "1" : null })}
          />
          the kernel notifies the kubelet as soon as a threshold is crossed (as podqos node does)
        </label>
        {failure ? (
          <p class="refused" role="alert">
            {failure}
          </p>
        ) : null}
        <button type="button" class="tool" onClick={() => change(reset)}>
          Reset
        </button>
      </fieldset>
    </Card>
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
