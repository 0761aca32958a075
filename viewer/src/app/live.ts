// What the server sends by itself: the newest state of a cluster, a node or a file, and how old it is. The browser's own
// EventSource gives up where the server was gone for a moment; this one does not.

import { useEffect, useState } from "preact/hooks";

export interface Live<T> {
  state: "connecting" | "live" | "lost";
  cluster: T | null;
  generation: number;
  /** When the newest state was taken, by this machine's clock. */
  takenAt: number | null;
  /** What hinders the server to see a newer one. */
  trouble: string;
}

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

/** Listen as long as `path` is not null; `arrived` hears of every state. */
export function useLive<T>(path: string | null, arrived: (cluster: T) => void): Live<T> {
  const [live, setLive] = useState<Live<T>>({ state: "connecting", cluster: null, generation: 0, takenAt: null, trouble: "" });
  useEffect(() => {
    if (path === null) return;
    let events: EventSource;
    let wait = FIRST_WAIT;
    let timer = 0;
    const connect = () => {
      events = new EventSource(path);
      events.addEventListener("open", () => {
        wait = FIRST_WAIT;
        setLive((before) => ({ ...before, state: "live" }));
      });
      events.addEventListener("cluster", (event) => {
        const { generation, takenAt, cluster } = JSON.parse((event as MessageEvent<string>).data) as { generation: number; takenAt: string; cluster: T };
        arrived(cluster);
        setLive({ state: "live", cluster, generation, takenAt: Date.parse(takenAt), trouble: "" });
      });
      events.addEventListener("age", (event) => {
        const { ageSeconds, trouble } = JSON.parse((event as MessageEvent<string>).data) as { ageSeconds: number; trouble: string };
        setLive((before) => ({ ...before, state: "live", takenAt: Date.now() - ageSeconds * 1000, trouble }));
      });
      events.addEventListener("error", () => {
        events.close();
        setLive((before) => ({ ...before, state: "lost" }));
        timer = window.setTimeout(connect, wait);
        wait = Math.min(LONGEST_WAIT, wait * 2);
      });
    };
    const now = () => {
      // Back from sleep or from another network: no need to wait.
      if (events.readyState !== EventSource.CLOSED) return;
      clearTimeout(timer);
      connect();
    };
    connect();
    addEventListener("online", now);
    return () => {
      removeEventListener("online", now);
      clearTimeout(timer);
      events.close();
    };
  }, [path]);
  return live;
}

/** The age of a state in words that do not change too often. */
export function age(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 2) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h ago` : `${Math.floor(seconds / 86_400)} d ago`;
}
