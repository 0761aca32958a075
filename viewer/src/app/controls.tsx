// Inputs with immediate answers: amounts with a slider, and requests of which only the latest counts.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { bytes } from "../format";
import { Failure, useRecovery, type Request, type Source } from "./source";
import "./controls.css";

const SUFFIXES: Readonly<Record<string, number>> = {
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  m: 1e-3,
};

/** Return the number of an amount, to place a slider; null if it is not valid. The server decides what it
 * means. */
export function amountOf(text: string): number | null {
  const found = /^\s*([0-9]*\.?[0-9]+)\s*([kMGTPm]|[KMGTP]i)?\s*$/.exec(text);
  if (found === null) return null;
  return Number(found[1]) * (SUFFIXES[found[2] ?? ""] ?? 1);
}

/** Whether two amounts are equal, in whatever notation. */
export function sameAmount(one: string, other: string): boolean {
  const [first, second] = [amountOf(one), amountOf(other)];
  return first === null || second === null ? one.trim() === other.trim() : first === second;
}

/** An amount of memory: a slider and a text field. Empty means none. */
export function Amount({
  label,
  value,
  max,
  was,
  change,
  hint,
}: {
  label: string;
  value: string;
  max: number;
  was?: string;
  change: (value: string) => void;
  hint?: string;
}) {
  const id = useId();
  const amount = amountOf(value);
  const step = Math.max(2 ** 20, 2 ** Math.floor(Math.log2(max / 256)));
  return (
    <div class="amount-field">
      <label for={id}>{label}</label>
      <input
        class="exact"
        id={id}
        value={value}
        placeholder="none"
        size={8}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => change(event.currentTarget.value)}
        aria-describedby={was === undefined ? undefined : `${id}-was`}
      />
      <input
        type="range"
        min={0}
        max={Math.ceil(max / step) * step}
        step={step}
        value={amount ?? 0}
        aria-label={`${label}, slider`}
        aria-valuetext={value || "none"}
        onInput={(event) =>
          change(Number(event.currentTarget.value) === 0 ? "" : bytes(Number(event.currentTarget.value)))
        }
      />
      <small class="quiet" id={`${id}-was`}>
        {was !== undefined && !sameAmount(was, value) ? `was ${was || "none"}` : (hint ?? "")}
      </small>
    </div>
  );
}

/** A slider for values other than memory, or with a non-linear scale: `toText` formats a position. */
export function Slider({
  label,
  value,
  min,
  max,
  step,
  toText,
  change,
}: {
  label: string;
  value: number;
  min: number;
  max: number;
  step: number;
  toText: (value: number) => string;
  change: (value: number) => void;
}) {
  const id = useId();
  return (
    <div class="amount-field">
      <label for={id}>{label}</label>
      <output for={id}>{toText(value)}</output>
      <input
        id={id}
        type="range"
        min={min}
        max={max}
        step={step}
        value={value}
        aria-valuetext={toText(value)}
        onInput={(event) => change(Number(event.currentTarget.value))}
      />
    </div>
  );
}

export interface Newest<T> {
  /** The latest answer; it stays if the next request fails. */
  data: T | null;
  failure: Failure | null;
  /** Whether the shown answer belongs to the latest request. */
  isCurrent: boolean;
  /** Whether the answer is late enough to show that: most arrive at once. */
  isLate: boolean;
}

const LATE_MS = 150;

/** Ask one question at a time: while one is answered, only the newest of those that follow is kept. What was
 * answered `about` something else is not shown. */
export function useNewest<T>(source: Source, request: Request | null, about = ""): Newest<T> {
  const [state, setState] = useState<{ data: T | null; failure: Failure | null; key: string; about: string }>(
    { data: null, failure: null, key: "", about },
  );
  const waiting = useRef<{ request: Request; key: string; about: string } | null>(null);
  const isBusy = useRef(false);
  const isGone = useRef(false);
  const [turn, setTurn] = useState(0);
  const key = request === null ? "" : JSON.stringify(request);
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);
  useEffect(() => {
    if (request === null) return;
    waiting.current = { request, key, about };
    const next = async (): Promise<void> => {
      const asked = waiting.current;
      if (asked === null || isBusy.current || isGone.current) return;
      waiting.current = null;
      isBusy.current = true;
      try {
        const data = await source.ask<T>(asked.request);
        if (!isGone.current) setState({ data, failure: null, key: asked.key, about: asked.about });
      } catch (error) {
        const failure = error instanceof Failure ? error : new Failure({ message: String(error) });
        if (!isGone.current)
          setState((before) => ({
            data: before.about === asked.about ? before.data : null,
            failure,
            key: asked.key,
            about: asked.about,
          }));
      }
      isBusy.current = false;
      await next();
    };
    void next();
  }, [source, key, turn]);
  const isCurrent = state.key === key;
  useRecovery(source, isCurrent ? state.failure : null, () => setTurn((before) => before + 1));
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    const timer = isCurrent ? 0 : setTimeout(() => setLate(true), LATE_MS);
    return () => clearTimeout(timer);
  }, [state, isCurrent]);
  return {
    data: state.about === about ? state.data : null,
    failure: isCurrent ? state.failure : null,
    isCurrent,
    isLate: isLate && !isCurrent,
  };
}
