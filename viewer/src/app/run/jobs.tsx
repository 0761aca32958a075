// Long runs on the server: begun, followed, cancelled, and what they gave.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { JobInfo } from "../../schema";
import { Failure, type Source } from "../source";
import { Failed } from "../ui";
import "./jobs.css";

const LOOK_AGAIN_MS = 300;

export interface JobRequest {
  kind: "run" | "blast";
  source: string;
  node?: string;
  edits?: readonly string[];
}

export function begin(source: Source, request: JobRequest): Promise<JobInfo> {
  return source.ask<JobInfo>({ path: "/api/jobs", body: request });
}

/** Return what tells whether `key` is still what is shown: who has left while a job was begun is not called back. */
export function useShown(key: string): (key: string) => boolean {
  const latest = useRef<string | null>(key);
  latest.current = key;
  useLayoutEffect(() => () => void (latest.current = null), []);
  return (asked) => latest.current === asked;
}

export interface Followed<T> {
  info: JobInfo | null;
  result: T | null;
  failure: Failure | null;
  cancel(): void;
}

/** Follow a job until it is over, then take its result; null follows nothing. */
export function useJob<T>(source: Source, id: string | null): Followed<T> {
  const [state, setState] = useState<{ id: string | null; info: JobInfo | null; result: T | null; failure: Failure | null }>({ id, info: null, result: null, failure: null });
  const cancelled = useRef(() => {});
  useEffect(() => {
    setState({ id, info: null, result: null, failure: null });
    if (id === null) return;
    let isOver = false;
    let timer = 0;
    const path = `/api/jobs/${encodeURIComponent(id)}`;
    const tell = (error: unknown) => !isOver && setState((before) => ({ ...before, failure: error instanceof Failure ? error : new Failure({ message: String(error) }) }));
    const look = async (): Promise<void> => {
      try {
        // A saved file has the result, and no job.
        const info = source.saved === null ? await source.ask<JobInfo>({ path }) : null;
        if (isOver) return;
        if (info !== null) setState((before) => ({ ...before, info }));
        if (info === null || info.state === "done") {
          const result = await source.ask<T>({ path: `${path}/result` });
          if (!isOver) setState((before) => ({ ...before, result }));
        } else if (info.state === "queued" || info.state === "running") timer = window.setTimeout(() => void look(), LOOK_AGAIN_MS);
      } catch (error) {
        tell(error);
      }
    };
    cancelled.current = () => {
      fetch(path, { method: "DELETE" }).then(() => void look(), tell);
    };
    void look();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [source, id]);
  const isOwn = state.id === id;
  return { info: isOwn ? state.info : null, result: isOwn ? state.result : null, failure: isOwn ? state.failure : null, cancel: () => cancelled.current() };
}

/** How far a job is, with a way to end it. */
export function Progress({ job, what, again }: { job: Followed<unknown>; what: string; again?: () => void }) {
  const { info, failure } = job;
  if (failure !== null) return <Failed failure={failure} {...(again ? { again } : {})} />;
  if (info?.state === "failed" || info?.state === "cancelled") {
    return <Failed failure={new Failure({ message: info.state === "failed" ? info.error : "It was cancelled." })} {...(again ? { again } : {})} />;
  }
  const share = info?.progress ?? 0;
  return (
    <div class="state job" role="status">
      <p>{info?.state === "queued" ? `${what}: waiting for a free worker…` : `${what}…`}</p>
      <progress max={1} value={share} aria-label={what} />
      <p class="quiet">{`${Math.floor(share * 100)} %${info !== null && info.seconds >= 1 ? `, ${Math.round(info.seconds)} s` : ""}`}</p>
      <button type="button" class="tool" onClick={job.cancel}>
        Cancel
      </button>
    </div>
  );
}
