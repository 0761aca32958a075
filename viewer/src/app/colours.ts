// The colour of a pod, the same in every view: a hue per class, a shade per workload. It depends on name and
// class alone; `src/podqos/text/svg.py` does the same for pictures that are files.

/** Each stands out from a light and from a dark page. */
const SHADES: Readonly<Record<string, readonly string[]>> = {
  Guaranteed: [
    "#026d8e", "#1666aa", "#3a84ca", "#0b8db6", "#4a5bac", "#6679cd",
    "#11a7d7", "#549de5", "#7d92e8", "#43c4f5", "#76bafe", "#9bb0fe",
  ],
  Burstable: [
    "#9a4900", "#8b5505", "#b36e00", "#c3610d", "#7d5e01", "#a17a00",
    "#df7a32", "#d2840b", "#be9106", "#fe9652", "#f2a036", "#deac22",
  ],
  BestEffort: [
    "#7d45a2", "#8d3e90", "#ad5cb0", "#9c63c2", "#99387b", "#ba5799",
    "#b57bdd", "#c775c9", "#d56fb2", "#d197fb", "#e590e7", "#f48bcf",
  ],
};
/** The colour of what has no class: system daemons, processes of no known pod. */
export const NO_CLASS = "#8a95a3";

/** What controllers add to the name of a replica, and a simulation to that of its replacement. */
const RANDOM = "[bcdfghjklmnpqrstvwxz2456789]";
const REPLICA = new RegExp(`(?:-(?:${RANDOM}{6,10}-${RANDOM}{5}|${RANDOM}{5}|[0-9]+))?(?:-r[0-9]+)?$`);

/** The colour of a pod, named `namespace/name`; replicas of a workload share it. */
export function colourOf(pod: string, qosClass: string | null): string {
  const shades = SHADES[qosClass ?? ""];
  if (shades === undefined) return NO_CLASS;
  return shades[hash(pod.replace(REPLICA, "")) % shades.length] as string;
}

const UTF_8 = new TextEncoder();

/** FNV-1a, folded to 16 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of UTF_8.encode(text)) value = Math.imul(value ^ byte, 0x01000193);
  return ((value >>> 16) ^ value) & 0xffff;
}

/** The colour of text on a colour such as #1f77b4. */
export function inkOn(colour: string): string {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 299 * red + 587 * green + 114 * blue < 140_000 ? "#ffffff" : "#10151c";
}
