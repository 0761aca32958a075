// How current the shown source is: only a cluster, a node and a guard are live. Files say when they changed,
// snapshots when they were taken, and a broken file what is wrong with it.

import { useEffect, useState } from "preact/hooks";
import { plural } from "../format";
import type { ClusterView, ProblemInfo, SourceInfo } from "../schema";
import { age, since, type Live } from "./live";
import { placeOf } from "./source";
import "./status.css";

const LIVE: ReadonlySet<string> = new Set(["cluster", "node", "guard"]);

/** Whether the shown state is current, and its age. */
export function Status({ info, live }: { info: SourceInfo; live: Live<ClusterView> | null }) {
  const [, setNow] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const { kind, words, old } = stateOf(info, live);
  if (words === "" && old === "") return null;
  return (
    <span class={`indicator ${kind}`} title={[words, old].filter(Boolean).join(" · ")}>
      {words === "" ? null : <span role="status">{words}</span>}
      {old === "" ? null : <span class="age">{words === "" ? old : ` · ${old}`}</span>}
    </span>
  );
}

interface State {
  kind: "live" | "connecting" | "lost" | "stale" | "file";
  words: string;
  old: string;
}

function stateOf(info: SourceInfo, live: Live<ClusterView> | null): State {
  if (live !== null && live.state === "lost") {
    const words = `connection lost, reconnecting${live.trouble ? `: ${live.trouble}` : ""}`;
    return { kind: "lost", words, old: oldOf(live) };
  }
  if (live !== null && LIVE.has(info.follows)) {
    if (live.state === "connecting") return { kind: "connecting", words: "connecting", old: "" };
    const words = live.trouble ? `stale: ${live.trouble}` : "live";
    return { kind: live.trouble ? "stale" : "live", words, old: oldOf(live) };
  }
  const [broken] = info.broken;
  if (broken !== undefined) {
    const many = new Set(info.broken.map((each) => each.file)).size;
    const words = many > 1 ? `${plural(many, "file")} broken` : `${nameOf(broken)} is broken`;
    return { kind: "stale", words: `${words}, last good state`, old: "" };
  }
  if (live?.trouble) return { kind: "stale", words: `out of date: ${live.trouble}`, old: "" };
  if (info.kind === "snapshot" && info.takenAt) {
    return { kind: "file", words: "", old: `snapshot of ${moment(info.takenAt)}` };
  }
  return { kind: "file", words: "", old: changed(info, live?.ahead ?? 0) };
}

function oldOf(live: Live<ClusterView>): string {
  return live.takenAt === null ? "" : age(since(live.takenAt));
}

/** When the files were changed last: "web.yaml, changed 3 min ago". */
function changed({ changedAt, changedFile, changedFiles }: SourceInfo, ahead: number): string {
  if (changedAt === "") return "";
  const old = age(Date.now() - ahead - Date.parse(changedAt));
  const of = changedFiles > 1 ? ` (of ${plural(changedFiles, "file")})` : "";
  return `${changedFile}${of}, changed ${old === "now" ? "just now" : old}`;
}

function moment(at: string): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return at;
  return time.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

function nameOf(problem: ProblemInfo): string {
  return problem.file.split("/").at(-1) ?? problem.file;
}

/** What is wrong with files that are shown as they were before: one line for each. */
export function BrokenFiles({ info }: { info: SourceInfo }) {
  const first = [...new Map(info.broken.toReversed().map((each) => [each.file, each])).values()].toReversed();
  if (first.length === 0) return null;
  const [which, are] = first.length === 1 ? ["this file", "it is"] : ["these files", "they are"];
  return (
    <section class="broken-files" role="alert" aria-label="Broken files">
      <ul>
        {first.map((each) => (
          <li key={each.file}>
            <b>⚠ {placeOf(each) || each.file}</b> {wordsOf(each)}
            {more(info.broken.filter(({ file }) => file === each.file).length - 1)}
          </li>
        ))}
      </ul>
      <p>{`The page shows the last good state of ${which}, and updates by itself when ${are} good again.`}</p>
    </section>
  );
}

function more(errors: number): string {
  return errors > 0 ? ` (and ${plural(errors, "more error")})` : "";
}

/** The message without its place, which is written before it. */
function wordsOf(problem: ProblemInfo): string {
  const place = placeOf(problem) || problem.file;
  const { message } = problem;
  const words = message.startsWith(place) ? message.slice(place.length).replace(/^:\s*/, "") : message;
  return words.replace(/^error:\s*/, "");
}
