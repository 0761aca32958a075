// The memory of a pod as a bar. Each part has a form of its own, also without colour.

import { bytes } from "../../format";
import type { PodBlock } from "../../schema";
import { colourOf } from "../colours";
import { keyOf } from "./model";

/** A bar that is as long as `reach`; the cells next to it say the same. */
export function PodBar({ pod, reach, isMeasured }: { pod: PodBlock; reach: number; isMeasured: boolean }) {
  const part = (value: number) => `${Math.min(100, (value / reach) * 100)}%`;
  const used = pod.usedBytes ?? 0;
  const active = Math.min(used, pod.activeCacheBytes);
  const cache = active + pod.inactiveCacheBytes;
  const cached = cache > 0 ? `, page cache ${bytes(cache)}` : "";
  const { limitBytes: limit, requestedBytes: request } = pod;
  const title =
    `used ${pod.usedBytes === null ? "unknown" : bytes(used)}${isMeasured ? "" : " (assumed)"}${cached}, ` +
    `request ${request > 0 ? bytes(request) : "none"}, limit ${limit === null ? "none" : bytes(limit)}`;
  const beside = { left: part(used - active) };
  const style = { width: part(used - active), "--pod": colourOf(keyOf(pod), pod.qosClass) };
  return (
    <div class={`memory bar-of-pod ${limit === null ? "unlimited" : ""}`} aria-hidden="true" title={title}>
      <i class={`part-used pod-fill ${pod.qosClass} ${isMeasured ? "" : "assumed"}`} style={style} />
      {active > 0 ? <i class="part-active" style={{ ...style, ...beside, width: part(active) }} /> : null}
      {cache > 0 ? <i class="part-cache" style={{ ...beside, width: part(cache) }} /> : null}
      {request > 0 ? <i class="part-request" style={{ left: part(request) }} /> : null}
      {limit === null ? null : limit > reach ? (
        <i class="part-beyond" />
      ) : (
        <i class="part-limit" style={{ left: part(limit) }} />
      )}
    </div>
  );
}

