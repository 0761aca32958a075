// Why a request failed, and where: as the server says it, or because there is none.

import type { ErrorInfo } from "../schema";

/** Why a request failed, apart from its content: a saved page lacks it, the server is away or lost it. */
export type Lack = "saved" | "away" | "gone" | "";

/** A failed request. */
export class Failure extends Error {
  /** The location of the error: `pods.yaml:3:7`. */
  readonly where: string;
  readonly lack: Lack;

  constructor(error: Partial<ErrorInfo> & { message: string }, lack: Lack = "") {
    super(error.message);
    this.where = placeOf(error);
    this.lack = lack;
  }

  /** Whether only a running `podqos ui` could answer. */
  get needsServer(): boolean {
    return this.lack === "saved" || this.lack === "away";
  }
}

/** Answers of a proxy, or of a server that is starting or busy: it is worth asking again. */
const AWAY: readonly number[] = [429, 502, 503, 504];

export function lackOf(status: number): Lack {
  return AWAY.includes(status) ? "away" : status === 404 ? "gone" : "";
}

/** Return the location of a problem: `pods.yaml:3:7`, or as much of it as is known. */
export function placeOf({ file, line, column }: { file?: string; line?: number; column?: number }): string {
  return file ? [file, line, column].filter(Boolean).join(":") : "";
}
