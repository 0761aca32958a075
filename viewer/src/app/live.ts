// What the server sends by itself: the newest state of a cluster, a node or a file, how old it is, and how
// far runs are. One stream for all of it, because a browser has few connections to a server: a page that is
// not looked at gives its own back.
//
// Where a stream cannot be had, or is silent (a proxy keeps it back, there are too many), the same is asked for
// every few seconds.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Age, ClusterView, Hello, JobInfo } from "../schema";

export interface Live<T> {
  state: "connecting" | "live" | "lost";
  cluster: T | null;
  generation: number;
  /** When the latest state was confirmed. */
  takenAt: Moment | null;
  /** What keeps the server or the page from a newer state. */
  trouble: string;
  /** How far the clock of this machine is ahead of the server's, in milliseconds. */
  ahead: number;
}

/** Listeners besides the views. */
export interface Heard {
  jobs(jobs: readonly JobInfo[]): void;
  /** There is a newer state; `cluster` is null if it has no pods. */
  state(cluster: ClusterView | null): void;
  /** A restarted server is at this address: everything stored on the previous one is gone. */
  restarted(): void;
  /** The connection is back after it was lost. */
  back(): void;
}

/** Two clocks: one continues while the machine sleeps, the other is never adjusted. */
export interface Moment {
  wall: number;
  steady: number;
}

function ago(milliseconds: number): Moment {
  return { wall: Date.now() - milliseconds, steady: performance.now() - milliseconds };
}

export function since({ wall, steady }: Moment): number {
  return Math.max(Date.now() - wall, performance.now() - steady);
}

type News = Age & { generation: number; cluster?: ClusterView };

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
/** The server sends something at least every five seconds. */
const SILENCE = 15_000;
const POLL = 2_000;
/** Number of polls before a stream is tried again. */
const POLLS = 15;
const KINDS = ["hello", "jobs", "cluster", "source", "age"] as const;

/** Listen while mounted and visible. */
export function useLive(isOn: boolean, heard: Heard): Live<ClusterView> {
  const [live, setLive] = useState<Live<ClusterView>>({
    state: "connecting",
    cluster: null,
    generation: 0,
    takenAt: null,
    trouble: "",
    ahead: 0,
  });
  const latest = useRef(heard);
  latest.current = heard;
  useEffect(() => {
    if (!isOn) return;
    const stream = new Stream(latest, setLive);
    return () => stream.end();
  }, [isOn]);
  return live;
}

class Stream {
  private live: Live<ClusterView> = {
    state: "connecting",
    cluster: null,
    generation: 0,
    takenAt: null,
    trouble: "",
    ahead: 0,
  };
  private events: EventSource | null = null;
  private asking: AbortController | null = null;
  private timer = 0;
  private wait = FIRST_WAIT;
  /** How many polls before a stream is tried. */
  private polls = 0;
  private heardAt = ago(0);
  private instance = "";
  private last = "";
  private readonly watch = window.setInterval(() => this.look(), 1000);

  constructor(
    private readonly heard: { current: Heard },
    private readonly show: (live: Live<ClusterView>) => void,
  ) {
    addEventListener("online", this.turn);
    document.addEventListener("visibilitychange", this.turn);
    this.turn();
  }

  end(): void {
    removeEventListener("online", this.turn);
    document.removeEventListener("visibilitychange", this.turn);
    clearInterval(this.watch);
    this.close();
  }

  /** Reconnect at once when the page becomes visible or online; stop listening when it is hidden. */
  private readonly turn = (): void => {
    this.close();
    if (document.visibilityState === "visible") this.connect();
  };

  private close(): void {
    clearTimeout(this.timer);
    this.events?.close();
    this.asking?.abort();
    this.events = this.asking = null;
  }

  private look(): void {
    if (this.events === null || since(this.heardAt) < SILENCE) return;
    this.polls = POLLS;
    this.lose("");
  }

  private connect(): void {
    this.heardAt = ago(0);
    const query = new URLSearchParams(this.last ? { since: this.last } : {});
    if (this.polls > 0) {
      this.polls--;
      query.set("once", "1");
      void this.ask(`/api/live?${query}`);
      return;
    }
    const events = (this.events = new EventSource(`/api/live?${query}`));
    let hasHeard = false;
    for (const kind of KINDS) {
      events.addEventListener(kind, ({ data, lastEventId }: MessageEvent<string>) => {
        if (this.events !== events) return;
        hasHeard = true;
        this.wait = FIRST_WAIT;
        this.take(kind, data, lastEventId);
      });
    }
    events.addEventListener("error", () => {
      if (this.events !== events) return;
      // Without a stream, a server that rejects the request says why.
      if (!hasHeard) this.polls = POLLS;
      this.lose("");
    });
  }

  private async ask(path: string): Promise<void> {
    const asking = (this.asking = new AbortController());
    try {
      const response = await fetch(path, { signal: asking.signal });
      const text = await response.text();
      if (!response.ok) return this.lose((JSON.parse(text) as { error: { message: string } }).error.message);
      for (const block of text.split("\n\n")) {
        const fields = Object.fromEntries(
          block.split("\n").map((line) => line.split(/: (.*)/s, 2)),
        ) as Record<string, string>;
        if (fields["event"] !== undefined)
          this.take(fields["event"], fields["data"] ?? "null", fields["id"] ?? "");
      }
      this.wait = FIRST_WAIT;
      this.timer = window.setTimeout(() => this.connect(), POLL);
    } catch {
      if (!asking.signal.aborted) this.lose("");
    }
  }

  private lose(trouble: string): void {
    this.close();
    this.tell({ state: "lost", trouble });
    this.timer = window.setTimeout(() => this.connect(), this.wait);
    this.wait = Math.min(LONGEST_WAIT, this.wait * 2);
  }

  private tell(changed: Partial<Live<ClusterView>>): void {
    this.live = { ...this.live, ...changed };
    this.show(this.live);
  }

  private take(kind: string, data: string, id: string): void {
    const value: unknown = JSON.parse(data);
    this.heardAt = ago(0);
    if (kind === "hello") {
      const { instance } = value as Hello;
      if (this.instance !== "" && this.instance !== instance) this.heard.current.restarted();
      this.instance = instance;
      const wasLost = this.live.state === "lost";
      this.tell({ state: "live" });
      if (wasLost) this.heard.current.back();
    } else if (kind === "jobs") this.heard.current.jobs(value as readonly JobInfo[]);
    else if (kind === "age") {
      const { ageSeconds, trouble, now } = value as Age;
      this.tell({ state: "live", takenAt: ago(ageSeconds * 1000), trouble, ahead: aheadOf(now) });
    } else this.news(value as News, id);
  }

  private news(news: News, id: string): void {
    const cluster = news.cluster ?? null;
    this.last = id;
    this.heard.current.state(cluster);
    this.tell({
      state: "live",
      cluster,
      generation: news.generation,
      takenAt: ago(news.ageSeconds * 1000),
      trouble: news.trouble,
      ahead: aheadOf(news.now),
    });
  }
}

/** How far the clock of this machine is ahead of another's; it may take a second until that is known. */
function aheadOf(now: string): number {
  const ahead = Date.now() - Date.parse(now);
  return Number.isFinite(ahead) && Math.abs(ahead) > 2000 ? ahead : 0;
}

/** The age of a state in words that do not change too often. */
export function age(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 2) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h ago` : `${Math.floor(seconds / 86_400)} d ago`;
}
