// Numbers and times for people.

const MI = 2 ** 20;
const GI = 2 ** 30;
const TI = 2 ** 40;

/** As Kubernetes writes amounts: 64Gi, 4196Mi, 56.5Gi. The words of the page, made by podqos, do the same. */
export function bytes(count: number): string {
  const sign = count < 0 ? "−" : "";
  const size = Math.abs(count);
  if (size === 0) return "0";
  if (size % TI === 0) return `${sign}${size / TI}Ti`;
  if (size % GI === 0) return `${sign}${size / GI}Gi`;
  if (size % MI === 0) return `${sign}${size / MI}Mi`;
  return size >= GI ? `${sign}${(size / GI).toFixed(1)}Gi` : `${sign}${(size / MI).toFixed(1)}Mi`;
}

/** About how much: 19.5Gi, for figures that are compared at a glance. */
export function about(count: number): string {
  const size = Math.abs(count);
  const [unit, name] = size >= TI ? [TI, "Ti"] : size >= GI ? [GI, "Gi"] : [MI, "Mi"];
  const value = Math.round((size / unit) * (unit === MI ? 1 : 10)) / (unit === MI ? 1 : 10);
  return value === 0 ? "0" : `${count < 0 ? "−" : ""}${value}${name}`;
}

/** By which signal headroom is the least, unless it is memory.available. */
export function bySignal(signal: string | null | undefined): string {
  return signal === "allocatableMemory.available" ? " (allocatable)" : "";
}

export function cores(milli: number): string {
  if (milli % 1000 === 0 || milli >= 10_000) return String(Math.round(milli / 100) / 10);
  return (milli / 1000).toFixed(2).replace(/0$/, "");
}

const WHOLE = new Intl.NumberFormat("en-US");

export function count(value: number): string {
  return WHOLE.format(value);
}

/** A share of what was wanted; less than all is never 100 %. */
export function percent(share: number): string {
  const value = 100 * share;
  if (value > 0 && value < 0.1) return "<0.1 %";
  if (value > 0 && value < 1) return `${value.toFixed(1)} %`;
  return `${share >= 1 ? Math.round(value) : Math.min(99, Math.round(value))} %`;
}

/** CPU time, such as 60 cpu-s. */
export function cpuTime(us: number): string {
  const value = us / 1e6;
  const isWhole = value >= 100 || Number.isInteger(value);
  return `${isWhole ? count(Math.round(value)) : Number(value.toPrecision(3))} cpu-s`;
}

export function signed(value: number): string {
  return value < 0 ? `−${-value}` : String(value);
}

/** A point in time or a duration, as exact as `stepUs` asks for. */
export function time(us: number, stepUs = 1000): string {
  const seconds = us / 1e6;
  if (seconds >= 86_400 && stepUs >= 3.6e9) return `${trim(seconds / 86_400)} d`;
  if (seconds >= 3600) {
    const whole = stepUs < 6e7 ? Math.round(seconds) : Math.floor(seconds / 60) * 60;
    const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
    const ends = [minutes > 0 || rest > 0 ? `${minutes} min` : "", rest > 0 ? `${rest} s` : ""];
    return [`${hours} h`, ...ends].filter(Boolean).join(" ");
  }
  if (seconds >= 120 || (seconds >= 60 && stepUs >= 1e7)) {
    const rest = seconds % 60;
    return `${Math.floor(seconds / 60)} min${rest >= 0.05 ? ` ${trim(Math.round(rest * 10) / 10)} s` : ""}`;
  }
  const digits = stepUs >= 1e6 ? 0 : stepUs >= 1e5 ? 1 : stepUs >= 1e4 ? 2 : 3;
  return `${seconds.toFixed(digits)} s`;
}

export function duration(us: number): string {
  if (us === 0) return "–";
  return time(us, us < 1e6 ? 1e3 : us < 1.2e8 ? 1e5 : 1e6);
}

// Rounded as the server does, whose sentences name the same times: 37.25 is 37.2.
const ROUNDED = { roundingMode: "halfEven", useGrouping: false } as const;
const THREE_DIGITS = new Intl.NumberFormat("en-US", { ...ROUNDED, maximumSignificantDigits: 3 });
const NO_FRACTION = new Intl.NumberFormat("en-US", { ...ROUNDED, maximumFractionDigits: 0 });

/** How long it takes: three digits below 100 seconds, and to the second from there on. */
export function seconds(value: number): string {
  if (value < 100) return `${THREE_DIGITS.format(value)} s`;
  const whole = Number(NO_FRACTION.format(value));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min${rest > 0 ? ` ${rest} s` : ""}`;
}

function trim(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** `1st`, `2nd`, `113th`. */
export function ordinal(value: number): string {
  const rest = value % 100;
  const end = rest >= 11 && rest <= 13 ? "th" : (["th", "st", "nd", "rd"][value % 10] ?? "th");
  return `${count(value)}${end}`;
}

/** The last part of `namespace/name`. */
export function bare(key: string): string {
  return key.slice(key.indexOf("/") + 1);
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** What was done to a victim, and by what. */
export function fate(by: string): string {
  if (by === "kernel") return "killed by the kernel";
  return by === "user" ? "evicted through the API" : "evicted by the kubelet";
}

/** How many were killed and how many evicted, by the signs of who did it. */
export function victims(by: readonly string[]): string {
  const killed = by.filter((each) => each === "kernel").length;
  const evicted = by.length - killed;
  const parts = [killed > 0 ? `${count(killed)} killed` : "", evicted > 0 ? `${count(evicted)} evicted` : ""];
  return parts.filter(Boolean).join(", ");
}

/** What a victim died of, by the level that ran out of memory; a signal speaks for itself. */
export const CAUSES: Readonly<Record<string, string>> = {
  container: "container memory limit reached",
  pod: "pod memory limit reached",
  class: "QoS class limit reached",
  kubepods: "limit of the pods' cgroup reached",
  node: "node out of memory",
};
