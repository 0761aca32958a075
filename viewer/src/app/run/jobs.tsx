// Long runs on the server: starting, following and cancelling them, and their results.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JobInfo } from "../../schema";
import { here, type Route } from "../router";
import { Failure, ServerSource, useAnswer, useJobs, type Source } from "../source";
import { Failed } from "../ui";
import type { App } from "../view";
import "./jobs.css";

export interface JobRequest {
  kind: JobInfo["kind"];
  source: string;
  node?: string;
  edits?: readonly string[];
}

export async function begin(source: Source, request: JobRequest): Promise<JobInfo> {
  const job = await source.ask<JobInfo>({ path: "/api/jobs", body: request });
  if (source instanceof ServerSource) source.tellJobs([...(source.jobs ?? []).filter((each) => each.id !== job.id), job]);
  return job;
}

/** The runs of the current source in starting order, including those from before the page was loaded; null: not known yet. */
export function useRuns(app: App): readonly JobInfo[] | null {
  const jobs = useJobs(app.source);
  return useMemo(() => jobs?.filter((each) => each.kind === "run" && each.source === app.info.id && each.generation === app.info.generation) ?? null, [jobs, app.info]);
}

/** Return the job in the address; for a saved page, one whose result it contains: only results of that kind have `field`. */
export function jobOf(route: Route, source: Source, field: string): string | null {
  const [named] = route.parts;
  if (named !== undefined || source.saved === null) return named ?? null;
  const held = Object.entries(source.saved.answers).find(([path, answer]) => /^\/api\/jobs\/[^/]+\/result$/.test(path) && field in (answer as object));
  return decodeURIComponent(held?.[0].split("/")[3] ?? "none");
}

/** The name of a run: its changes. */
export function nameOf({ edits }: JobInfo): string {
  return edits.join(", ") || "unchanged";
}

/** Return what tells whether `key` is still what is shown: who has left while a job was begun is not called back. A view is left
 * with the address, and drawn for a moment yet. */
export function useShown(key: string, route: Route): (key: string) => boolean {
  const latest = useRef<{ key: string; route: Route } | null>(null);
  latest.current = { key, route };
  useLayoutEffect(() => () => void (latest.current = null), []);
  return (asked) => latest.current?.key === asked && latest.current.route === here();
}

export interface Followed<T> {
  info: JobInfo | null;
  result: T | null;
  failure: Failure | null;
  cancel(): void;
}

/** Follow a job until it is over, then get its result; null follows nothing. */
export function useJob<T>(source: Source, id: string | null): Followed<T> {
  const jobs = useJobs(source);
  const told = jobs?.find((each) => each.id === id) ?? null;
  const path = `/api/jobs/${encodeURIComponent(id ?? "")}`;
  // A job that the server has not pushed is requested: the answer says why.
  const asked = useAnswer<JobInfo>(source, id !== null && jobs !== null && told === null ? { path } : null);
  const info = told ?? asked.data;
  // A saved page has the result, but no job.
  const isDone = info?.state === "done" || (id !== null && source.saved !== null);
  const result = useAnswer<T>(source, isDone ? { path: `${path}/result` } : null);
  const [refused, setRefused] = useState<Failure | null>(null);
  const cancel = () => {
    fetch(path, { method: "DELETE" }).catch((error: unknown) => setRefused(new Failure({ message: String(error) })));
  };
  return { info, result: result.data, failure: result.failure ?? (result.data === null ? asked.failure : null) ?? refused, cancel };
}

/** The progress of a job, with a cancel button. */
export function Progress({ job, what, again }: { job: Followed<unknown>; what: string; again?: () => void }) {
  const { info, failure } = job;
  if (failure !== null) return <Failed failure={failure} {...(again ? { again } : {})} />;
  if (info?.state === "failed" || info?.state === "cancelled") {
    return <Failed failure={new Failure({ message: info.state === "failed" ? info.error : "The run was cancelled." })} {...(again ? { again } : {})} />;
  }
  const share = info?.progress ?? 0;
  return (
    <div class="state job" role="status">
      <p>{`${what}…`}</p>
      <progress max={1} value={share} aria-label={what} />
      <p class="quiet">{info?.state === "queued" ? "waiting for a free worker" : `${Math.floor(share * 100)} %${info !== null && info.seconds >= 1 ? `, ${Math.round(info.seconds)} s` : ""}`}</p>
      <button type="button" class="tool" onClick={job.cancel}>
        Cancel
      </button>
    </div>
  );
}
