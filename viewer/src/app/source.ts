// Where answers come from: the server of the page, or the page itself where it was saved as one file.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ErrorInfo, JobInfo, Session, SourceInfo } from "../schema";

/** What is written into a page that was saved. */
export interface Saved {
  session: Session;
  /** Answers by the address they were asked for; for a POST with its body behind a space. */
  answers: Readonly<Record<string, unknown>>;
  route?: string;
  savedAt?: string;
}

/** An answer that is no answer; `needsServer` where only a running `podqos ui` could give it. */
export class Failure extends Error {
  /** Where it is wrong: `pods.yaml:3:7`. */
  readonly where: string;
  readonly needsServer: boolean;

  constructor(error: Partial<ErrorInfo> & { message: string }, needsServer = false) {
    super(error.message);
    this.where = placeOf(error);
    this.needsServer = needsServer;
  }
}

/** Return where a problem is: `pods.yaml:3:7`, or as much of that as is known. */
export function placeOf({ file, line, column }: { file?: string; line?: number; column?: number }): string {
  return file ? [file, line, column].filter(Boolean).join(":") : "";
}

export interface Request {
  path: string;
  body?: unknown;
}

function keyOf({ path, body }: Request): string {
  return body === undefined ? path : `${path} ${JSON.stringify(body)}`;
}

export abstract class Source {
  abstract readonly saved: Saved | null;
  abstract ask<T>(request: Request, signal?: AbortSignal): Promise<T>;
  /** What was answered about one source, and about the runs made of it: what the reader may hand on. */
  abstract answers(of: string): Readonly<Record<string, unknown>>;
}

const MOST_KEPT = 64;

export class ServerSource extends Source {
  readonly saved = null;
  private readonly kept = new Map<string, unknown>();

  async ask<T>(request: Request, signal?: AbortSignal): Promise<T> {
    const { path, body } = request;
    const answer = await fetched(path, body === undefined ? { method: "GET" } : { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } }, signal);
    this.keep(request, answer);
    return answer as T;
  }

  /** Remember an answer, for the page that the reader may save. */
  keep(request: Request, answer: unknown): void {
    const key = keyOf(request);
    this.kept.delete(key);
    this.kept.set(key, answer);
    const [oldest] = this.kept.keys();
    if (this.kept.size > MOST_KEPT && oldest !== undefined) this.kept.delete(oldest);
  }

  answers(of: string): Readonly<Record<string, unknown>> {
    const isOwn = (path: string): boolean => {
      const jobs = [...path.matchAll(/(?:\/jobs\/|before=|after=)(\w+)/g)].map((found) => found[1] ?? "");
      return path.startsWith(`/api/sources/${encodeURIComponent(of)}/`) || (jobs.length > 0 && jobs.every((job) => location.hash.includes(job) || (this.kept.get(`/api/jobs/${job}`) as JobInfo | undefined)?.source === of));
    };
    return Object.fromEntries([...this.kept].filter(([key]) => isOwn(key.split(" ", 1)[0] ?? "")));
  }

  /** Give the server files of the reader's, which belong together. */
  async upload(files: readonly File[]): Promise<SourceInfo> {
    const [only] = files;
    if (files.length === 1 && only !== undefined) {
      return (await fetched(`/api/sources?${new URLSearchParams({ name: only.name })}`, { method: "POST", body: only })) as SourceInfo;
    }
    const packed = await Promise.all(files.map(async (file) => ({ name: file.webkitRelativePath || file.name, data: await base64(file) })));
    return (await fetched("/api/sources", { method: "POST", body: JSON.stringify({ files: packed }), headers: { "content-type": "application/vnd.podqos.files+json" } })) as SourceInfo;
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
    const message = "This file does not hold the answer: it holds what was looked at when it was saved. Start podqos ui to ask for more.";
    return Promise.reject(new Failure({ message }, true));
  }

  answers(): Readonly<Record<string, unknown>> {
    return this.saved.answers;
  }
}

async function fetched(path: string, options: RequestInit, signal?: AbortSignal): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(path, signal === undefined ? options : { ...options, signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Failure({ message: "podqos ui does not answer. Is it still running?" }, true);
  }
  const text = await response.text();
  let answer: unknown = null;
  try {
    answer = text === "" ? null : JSON.parse(text);
  } catch {
    if (response.ok) throw new Failure({ message: `podqos ui answered ${path} with something that is not JSON.` });
  }
  if (response.ok) return answer;
  throw new Failure((answer as { error?: ErrorInfo } | null)?.error ?? { message: `podqos ui answered ${response.status} ${response.statusText}.` });
}

export interface Answered<T> {
  /** The newest answer; while the next is awaited, the one before. */
  data: T | null;
  failure: Failure | null;
  isLoading: boolean;
  again(): void;
}

/** Ask when the request is new; null asks nothing. `live` is an answer that came by itself, and is newer. */
export function useAnswer<T>(source: Source, request: Request | null): Answered<T> {
  const key = request === null ? null : keyOf(request);
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<{ key: string | null; data: T | null; failure: Failure | null; isLoading: boolean }>({ key, data: null, failure: null, isLoading: key !== null });
  const latest = useRef(request);
  latest.current = request;
  useEffect(() => {
    const asked = latest.current;
    if (asked === null) {
      setState({ key: null, data: null, failure: null, isLoading: false });
      return;
    }
    const control = new AbortController();
    setState((before) => ({ ...before, isLoading: true, data: sameView(before.key, key) ? before.data : null, failure: null, key }));
    source.ask<T>(asked, control.signal).then(
      (data) => control.signal.aborted || setState({ key, data, failure: null, isLoading: false }),
      (error: unknown) => {
        if (control.signal.aborted) return;
        const failure = error instanceof Failure ? error : new Failure({ message: String(error) });
        setState((before) => ({ ...before, failure, isLoading: false }));
      },
    );
    return () => control.abort();
  }, [source, key, turn]);
  return { data: state.data, failure: state.failure, isLoading: state.isLoading, again: () => setTurn((before) => before + 1) };
}

/** The same path with another body is the same view, changed: what it shows may stay until it is answered. */
function sameView(one: string | null, other: string | null): boolean {
  return one !== null && other !== null && one.split(" ", 1)[0] === other.split(" ", 1)[0];
}
