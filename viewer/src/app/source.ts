// Where answers come from: the page's server, or the page itself if it was saved as one file.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Saved } from "../run";
import { Failure, lackOf } from "./failure";
import { pathOf } from "./paths";
import { here } from "./router";
import type { ErrorInfo, JobInfo, SourceInfo } from "../schema";

export { Failure, placeOf, type Lack } from "./failure";

export interface Request {
  path: string;
  body?: unknown;
}

/** The key of an answer in a saved page. */
export function keyOf({ path, body }: Request): string {
  return body === undefined ? path : `${path} ${JSON.stringify(body)}`;
}

export abstract class Source {
  abstract readonly saved: Saved | null;
  abstract ask<T>(request: Request, signal?: AbortSignal): Promise<T>;
  /** The answers about one source and its runs: what the reader may share. */
  abstract answers(of: string): Readonly<Record<string, unknown>>;

  private readonly listeners = new Set<(about: string) => void>();

  /** Whether there is anything to show in a view: always, if a server answers. */
  holds(_view: string): boolean {
    return true;
  }

  /** The address at which a view shows what there is, if it is not the view's usual one. */
  addressOf(_view: string): string | undefined {
    return undefined;
  }

  /** Whether the server pushes this answer whenever it changes. */
  isTold(_path: string): boolean {
    return false;
  }

  /** Subscribe to changes below a path prefix; return the function that unsubscribes. */
  listen(listener: (about: string) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  protected tell(about: string): void {
    for (const each of [...this.listeners]) each(about);
  }
}

const MOST_KEPT = 64;
const JOBS = "/api/jobs";
/** The answers to pasted texts; a saved page holds the one that it shows. */
const PASTED = "/api/autopsy/";

/** The key of the answer to the n-th text that was pasted next to a source. */
export function pastedPath(source: string, number: string): string {
  return `${PASTED}${encodeURIComponent(source)}/${number}`;
}

/** Whether a saved page needs no answer to this: it has the session, and the results of runs instead of runs.
 * */
function isShared(key: string): boolean {
  return key === "/api/session" || key.startsWith(`${JOBS} `) || /^\/api\/jobs\/[^/]+$/.test(key);
}

export class ServerSource extends Source {
  readonly saved = null;
  /** Answers with their ETags. */
  private readonly kept = new Map<string, { answer: unknown; etag: string | null }>();
  /** The runs of this visitor; null until the server has sent them. */
  jobs: readonly JobInfo[] | null = null;
  /** The sources whose state was pushed. */
  private readonly following = new Set<string>();
  /** The paths of answers that the server pushes. */
  private told = "";
  /** The last address of each view, and the keys of the answers that it asked for. */
  private readonly visits = new Map<string, { address: string; keys: Set<string> }>();

  /** Ask the server; unchanged answers are not sent again. */
  async ask<T>(request: Request, signal?: AbortSignal): Promise<T> {
    const { path, body } = request;
    this.note(keyOf(request));
    const known = this.kept.get(keyOf(request));
    const options: RequestInit =
      body !== undefined
        ? { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } }
        : { method: "GET", headers: known?.etag ? { "if-none-match": known.etag } : {} };
    const response = await responded(path, options, signal);
    const answer =
      response.status === 304 && known !== undefined ? known.answer : await answered(path, response);
    if (!this.isTold(path)) this.keep(request, answer, response.headers.get("etag"));
    return answer as T;
  }

  override isTold(path: string): boolean {
    return path === this.told;
  }

  /** Remember an answer, for a saved page. */
  keep(request: Request, answer: unknown, etag: string | null = null): void {
    const key = keyOf(request);
    this.kept.delete(key);
    this.kept.set(key, { answer, etag });
    const [oldest] = this.kept.keys();
    if (this.kept.size > MOST_KEPT && oldest !== undefined) this.kept.delete(oldest);
  }

  /** Ask for the runs if none were pushed yet. */
  askJobs(): void {
    if (this.jobs !== null) return;
    fetched(JOBS, { method: "GET" }).then(
      (jobs) => this.jobs ?? this.tellJobs(jobs as readonly JobInfo[]),
      () => {}, // the stream reports them, once it is open
    );
  }

  /** Receive runs from the server: all of them, or one that was just started. */
  tellJobs(jobs: readonly JobInfo[]): void {
    this.jobs = jobs;
    this.tell(JOBS);
  }

  /** Receive the latest state of a source: earlier answers are outdated, except for the first state, which
   * the page was loaded with. */
  tellState(of: string, cluster: unknown): void {
    const about = `/api/sources/${encodeURIComponent(of)}/`;
    if (this.following.has(of))
      for (const key of [...this.kept.keys()]) if (key.startsWith(about)) this.kept.delete(key);
    this.following.add(of);
    if (cluster !== null) this.keep({ path: (this.told = `${about}cluster`) }, cluster);
    this.tell(about);
  }

  /** A restarted server answers from now on. */
  tellRestarted(): void {
    // What was pasted was never there.
    for (const key of [...this.kept.keys()]) if (!key.startsWith(PASTED)) this.kept.delete(key);
    this.jobs = null;
    this.tell("/api/session");
  }

  /** The server answers again after the connection was lost. */
  tellBack(): void {
    this.tell(BACK);
  }

  /** Remember which answers the view at this address asked for: a saved page leads only where it has them
   * all. */
  private note(key: string): void {
    const { view } = here();
    const known = this.visits.get(view);
    const visit =
      known?.address === location.hash ? known : { address: location.hash, keys: new Set<string>() };
    visit.keys.add(key);
    this.visits.set(view, visit);
  }

  /** The addresses of the views whose answers are all among these. */
  routes(answers: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
    const whole = [...this.visits].filter(([, { keys }]) =>
      [...keys].every((key) => isShared(key) || key in answers),
    );
    return Object.fromEntries(whole.map(([view, { address }]) => [view, address]));
  }

  answers(of: string): Readonly<Record<string, unknown>> {
    const pasted = pastedPath(of, here().query.get("pasted") ?? "");
    const isOwn = (path: string): boolean => {
      if (path.startsWith(PASTED)) return path === pasted;
      const jobs = [...path.matchAll(/(?:\/jobs\/|before=|after=)(\w+)/g)].map((found) => found[1] ?? "");
      return (
        path.startsWith(`/api/sources/${encodeURIComponent(of)}/`) ||
        (jobs.length > 0 &&
          jobs.every(
            (job) => location.hash.includes(job) || this.jobs?.find((each) => each.id === job)?.source === of,
          ))
      );
    };
    return Object.fromEntries(
      [...this.kept]
        .filter(([key]) => isOwn(key.split(" ", 1)[0] ?? ""))
        .map(([key, { answer }]) => [key, answer]),
    );
  }

  /** Upload files that belong together. */
  async upload(files: readonly File[]): Promise<SourceInfo> {
    const [only] = files;
    if (files.length === 1 && only !== undefined) {
      return (await fetched(`/api/sources?${new URLSearchParams({ name: only.name })}`, {
        method: "POST",
        body: only,
      })) as SourceInfo;
    }
    const packed = await Promise.all(
      files.map(async (file) => ({ name: pathOf(file), data: await base64(file) })),
    );
    return (await fetched("/api/sources", {
      method: "POST",
      body: JSON.stringify({ files: packed }),
      headers: { "content-type": "application/vnd.podqos.files+json" },
    })) as SourceInfo;
  }

  /** Open the demo. */
  async demo(): Promise<SourceInfo> {
    return (await fetched("/api/demo", { method: "POST" })) as SourceInfo;
  }

  /** Ask for the autopsy of a text; the server keeps nothing of it. `of` is the source whose pods name the
   * victims. */
  async paste<T>(text: Blob, of: string | null, signal: AbortSignal): Promise<T> {
    const path = of === null ? "/api/autopsy" : `/api/autopsy?${new URLSearchParams({ source: of })}`;
    const response = await responded(
      path,
      { method: "POST", body: text, headers: { "content-type": "text/plain" } },
      signal,
    );
    return (await answered(path, response)) as T;
  }

  async remove(path: string): Promise<void> {
    await fetched(path, { method: "DELETE" });
  }
}

async function base64(file: File): Promise<string> {
  const reader = new FileReader();
  await new Promise((resolve, reject) => {
    reader.onload = resolve;
    reader.onerror = () => reject(new Failure({ message: `${file.name} cannot be read.` }));
    reader.readAsDataURL(file);
  });
  return String(reader.result).replace(/^[^,]*,/, "");
}

export class SavedSource extends Source {
  readonly saved: Saved;

  constructor(saved: Saved) {
    super();
    this.saved = saved;
  }

  ask<T>(request: Request): Promise<T> {
    const answer = request.path === "/api/session" ? this.saved.session : this.saved.answers[keyOf(request)];
    if (answer !== undefined) return Promise.resolve(answer as T);
    const message =
      "This saved page only contains what was open when it was saved. Start podqos ui to see more.";
    return Promise.reject(new Failure({ message }, "saved"));
  }

  answers(): Readonly<Record<string, unknown>> {
    return this.saved.answers;
  }

  /** Whether the page has what a view shows. */
  override holds(view: string): boolean {
    const { answers, routes } = this.saved;
    if (routes !== undefined) return view in routes;
    const paths = Object.keys(answers);
    const isRun = paths.some(
      (path) => /^\/api\/jobs\/[^/]+\/result$/.test(path) && "kills" in (answers[path] as object),
    );
    return paths.some((path) => path.split(" ", 1)[0]?.endsWith(`/${view}`)) || (view === "run" && isRun);
  }

  /** The address of a view that the page has. */
  override addressOf(view: string): string | undefined {
    return this.saved.routes?.[view];
  }
}

async function fetched(path: string, options: RequestInit): Promise<unknown> {
  return answered(path, await responded(path, options));
}

async function responded(path: string, options: RequestInit, signal?: AbortSignal): Promise<Response> {
  try {
    return await fetch(path, signal === undefined ? options : { ...options, signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Failure({ message: "podqos ui does not answer. Is it still running?" }, "away");
  }
}

async function answered(path: string, response: Response): Promise<unknown> {
  const text = await response.text();
  let answer: unknown = null;
  try {
    answer = text === "" ? null : JSON.parse(text);
  } catch {
    if (response.ok) throw new Failure({ message: `podqos ui did not answer ${path} with valid JSON.` });
  }
  if (response.ok) return answer;
  const error = (answer as { error?: ErrorInfo } | null)?.error;
  const message = `podqos ui answered ${response.status} ${response.statusText}.`;
  throw new Failure(error ?? { message }, lackOf(response.status));
}

export interface Answered<T> {
  /** The latest answer; while the next one is pending, the previous one. */
  data: T | null;
  failure: Failure | null;
  isLoading: boolean;
  again(): void;
}

const LEAST_PAUSE = 1000;
/** The maximum share of time spent on asking again. */
const SHARE = 0.1;
/** What listeners are told when the server answers again: whoever failed meanwhile asks again. */
const BACK = "back";
const FIRST_RETRY = 500;
const LONGEST_RETRY = 10_000;

/** Ask when the request changes, and again when its subject changes; null asks nothing. */
export function useAnswer<T>(source: Source, request: Request | null): Answered<T> {
  const key = request === null ? null : keyOf(request);
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<{
    key: string | null;
    data: T | null;
    failure: Failure | null;
    isLoading: boolean;
  }>({ key, data: null, failure: null, isLoading: key !== null });
  const latest = useRef(request);
  latest.current = request;
  useEffect(() => {
    const asked = latest.current;
    if (asked === null) {
      setState({ key: null, data: null, failure: null, isLoading: false });
      return;
    }
    const control = new AbortController();
    let [isAsking, isOld, timer, pauseUntil, retry, retryTimer, hasFailed] = [
      false,
      false,
      0,
      0,
      FIRST_RETRY,
      0,
      false,
    ];
    const ask = async (): Promise<void> => {
      clearTimeout(retryTimer);
      [isAsking, isOld, timer] = [true, false, 0];
      const began = performance.now();
      try {
        const data = await source.ask<T>(asked, control.signal);
        [retry, hasFailed] = [FIRST_RETRY, false];
        if (!control.signal.aborted) setState({ key, data, failure: null, isLoading: false });
      } catch (error) {
        const failure = error instanceof Failure ? error : new Failure({ message: String(error) });
        hasFailed = true;
        // What was shown stays while the server is away: the bar says so.
        const keeps = (before: { key: string | null; data: T | null }) =>
          failure.lack === "away" && before.data !== null && before.key === key;
        if (!control.signal.aborted)
          setState((before) => ({ ...before, failure: keeps(before) ? null : failure, isLoading: false }));
        if (failure.lack === "away" && !control.signal.aborted) {
          retryTimer = window.setTimeout(() => void again(), retry);
          retry = Math.min(LONGEST_RETRY, retry * 2);
        }
      }
      isAsking = false;
      pauseUntil = performance.now() + Math.max(LEAST_PAUSE, (performance.now() - began) / SHARE);
      askAgain();
    };
    const askAgain = (): void => {
      if (isOld && !isAsking && timer === 0 && !control.signal.aborted)
        timer = window.setTimeout(() => void ask(), Math.max(0, pauseUntil - performance.now()));
    };
    const again = async (): Promise<void> => {
      if (!isAsking && timer === 0 && !control.signal.aborted) await ask();
    };
    const end = source.listen((about) => {
      if (about === BACK && hasFailed) void again();
      if (!asked.path.startsWith(about) || source.isTold(asked.path)) return;
      isOld = true;
      askAgain();
    });
    setState((before) => ({
      ...before,
      isLoading: true,
      data: sameView(before.key, key) ? before.data : null,
      failure: null,
      key,
    }));
    void ask();
    return () => {
      end();
      clearTimeout(timer);
      clearTimeout(retryTimer);
      control.abort();
    };
  }, [source, key, turn]);
  // The answer to another request is never shown for this one, not even for a moment.
  const isOwn = state.key === key || sameView(state.key, key);
  return {
    data: isOwn ? state.data : null,
    failure: isOwn ? state.failure : null,
    isLoading: !isOwn || state.isLoading,
    again: () => setTurn((before) => before + 1),
  };
}

/** Ask again when the server is back, and every few seconds while it is away. */
export function useRecovery(source: Source, failure: Failure | null, again: () => void): void {
  const wait = useRef(FIRST_RETRY);
  const latest = useRef(again);
  latest.current = again;
  useEffect(() => {
    if (failure === null) {
      wait.current = FIRST_RETRY;
      return;
    }
    const retry = () => latest.current();
    const timer = failure.lack === "away" ? setTimeout(retry, wait.current) : 0;
    wait.current = Math.min(LONGEST_RETRY, wait.current * 2);
    const end = source.listen((about) => about === BACK && retry());
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [source, failure]);
}

/** The same path with another body is the same view, changed: its content may stay until the answer arrives.
 * */
function sameView(one: string | null, other: string | null): boolean {
  return one !== null && other !== null && one.split(" ", 1)[0] === other.split(" ", 1)[0];
}

/** The runs of this visitor, latest last; null if the server has not sent them yet. */
export function useJobs(source: Source): readonly JobInfo[] | null {
  const [jobs, setJobs] = useState(source instanceof ServerSource ? source.jobs : null);
  useLayoutEffect(() => {
    if (!(source instanceof ServerSource)) return;
    const take = () => setJobs(source.jobs);
    take();
    source.askJobs();
    return source.listen(take);
  }, [source]);
  return jobs;
}
