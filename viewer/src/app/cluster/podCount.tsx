// How many pods a node runs.

import { count, plural } from "../../format";
import type { NodePanel } from "../../schema";
import { isCrowded } from "./model";

/** The number of pods, and whether that is more than the node can run. */
export function PodCount({ node, pods }: { node: NodePanel; pods: number }) {
  if (node.mostPods === null) return <span>{plural(pods, "pod")}</span>;
  if (!isCrowded(node, pods)) return <span>{`${count(pods)} of ${plural(node.mostPods, "pod")}`}</span>;
  const most = count(node.mostPods);
  return <span class="trouble">{`⚠ ${plural(pods, "pod")}, but it can run only ${most}`}</span>;
}
