// Long runs on the server: starting, following and cancelling them, and their results.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JobInfo } from "../../schema";
import { ordinal } from "../../format";
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
  if (source instanceof ServerSource)
    source.tellJobs([...(source.jobs ?? []).filter((each) => each.id !== job.id), job]);
  return job;
}

/** The runs of the source in starting order, also those from before the page was loaded; null: unknown. */
export function useRuns(app: App): readonly JobInfo[] | null {
  const jobs = useJobs(app.source);
  return useMemo(
    () =>
      jobs?.filter(
        (each) =>
          each.kind === "run" && each.source === app.info.id && each.generation === app.info.generation,
      ) ?? null,
    [jobs, app.info],
  );
}

/** The job in the address; of a saved page, the one whose result it has: those of its kind have `field`. */
export function jobOf(route: Route, source: Source, field: string): string | null {
  const [named] = route.parts;
  if (named !== undefined || source.saved === null) return named ?? null;
  const held = Object.entries(source.saved.answers).find(
    ([path, answer]) => /^\/api\/jobs\/[^/]+\/result$/.test(path) && field in (answer as object),
  );
  return decodeURIComponent(held?.[0].split("/")[3] ?? "none");
}

/** The name of a run: its changes. */
export function nameOf({ edits }: JobInfo): string {
  return edits.join(", ") || "unchanged";
}

/** Return what tells whether `key` is still shown: who has left while a job was begun is not called back. A
 * view is left with the address, and drawn for a moment yet. */
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
    fetch(path, { method: "DELETE" }).catch((error: unknown) =>
      setRefused(new Failure({ message: String(error) })),
    );
  };
  return {
    info,
    result: result.data,
    failure: result.failure ?? (result.data === null ? asked.failure : null) ?? refused,
    cancel,
  };
}

/** The place of a job in the queue. */
function queued(place: number): string {
  return place > 1 ? `${ordinal(place)} in the queue` : "next in the queue";
}

/** The progress of a job, with a cancel button. */
export function Progress({ job, what, again }: { job: Followed<unknown>; what: string; again?: () => void }) {
  const { info, failure } = job;
  if (failure !== null) return <Failed failure={failure} {...(again ? { again } : {})} />;
  if (info?.state === "failed")
    return <Failed failure={new Failure({ message: info.error })} {...(again ? { again } : {})} />;
  if (info?.state === "cancelled") return <Cancelled again={again} />;
  const [share, seconds] = [info?.progress ?? 0, info?.seconds ?? 0];
  return (
    <div class="state job" role="status">
      <p>{`${what}…`}</p>
      <progress max={1} value={share} aria-label={what} />
      <p class="quiet">
        {info?.state === "queued"
          ? queued(info.place)
          : `${Math.floor(share * 100)} %${seconds >= 1 ? `, ${Math.round(seconds)} s` : ""}`}
      </p>
      <button type="button" class="tool" onClick={job.cancel}>
        Cancel
      </button>
    </div>
  );
}

/** A run that was cancelled: as intended, and not an error. */
function Cancelled({ again }: { again: (() => void) | undefined }) {
  return (
    <div class="state cancelled" role="status">
      <h2>Cancelled</h2>
      {again === undefined ? null : (
        <p>
          <button type="button" class="tool" onClick={again}>
            Run again
          </button>
        </p>
      )}
    </div>
  );
}

/** Call a function once if a job is gone, such as after the server was restarted. */
export function useGone(job: Followed<unknown>, id: string | null, renew: () => void): void {
  const renewed = useRef<string | null>(null);
  const isGone = job.failure?.lack === "gone" && id !== null;
  useLayoutEffect(() => {
    if (!isGone || renewed.current === id) return;
    renewed.current = id;
    renew();
  }, [isGone, id]);
}
