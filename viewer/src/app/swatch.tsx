// The colour of a pod next to its name; the pattern tells its class.

import { colourOf } from "./colours";
import "./swatch.css";

export function Swatch({ pod, qosClass }: { pod: string; qosClass: string | null }) {
  const style = { "--pod": colourOf(pod, qosClass) };
  return <i class={`swatch ${qosClass ?? ""}`} style={style} aria-hidden="true" />;
}
