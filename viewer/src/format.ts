// Numbers and times for people.

const MI = 2 ** 20;
const GI = 2 ** 30;

export function bytes(count: number): string {
  const sign = count < 0 ? "−" : "";
  const size = Math.abs(count);
  if (size >= GI) return `${sign}${short(size / GI)} GiB`;
  if (size >= MI || size === 0) return `${sign}${short(size / MI)} MiB`;
  return `${sign}${short(size / 1024)} KiB`;
}

function short(value: number): string {
  if (value >= 100 || Number.isInteger(value)) return String(Math.round(value));
  return value >= 10 ? value.toFixed(1) : value.toFixed(2).replace(/0$/, "");
}

export function cores(milli: number): string {
  return milli % 1000 === 0 || milli >= 10_000 ? String(Math.round(milli / 100) / 10) : (milli / 1000).toFixed(2).replace(/0$/, "");
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

export function signed(value: number): string {
  return value < 0 ? `−${-value}` : String(value);
}

/** A point in time or a duration, as exact as `stepUs` asks for. */
export function time(us: number, stepUs = 1000): string {
  const seconds = us / 1e6;
  if (seconds >= 86_400 && stepUs >= 3.6e9) return `${trim(seconds / 86_400)} d`;
  if (seconds >= 3600) {
    const hours = Math.floor(seconds / 3600);
    const minutes = Math.floor((seconds % 3600) / 60);
    const rest = Math.round(seconds % 60);
    return `${hours} h ${pad(minutes)}${stepUs < 6e7 && rest > 0 ? `:${pad(rest)}` : ""}`;
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

function trim(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}

/** The last part of `namespace/name`. */
export function bare(key: string): string {
  return key.slice(key.indexOf("/") + 1);
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
