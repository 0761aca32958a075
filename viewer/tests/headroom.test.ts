import assert from "node:assert/strict";
import { test } from "node:test";
import { leftOn, leftText } from "../src/app/headroom";
import type { NodePanel } from "../src/schema";

const GI = 2 ** 30;
const node = (firstBy: "kernel" | "kubelet" | null, kernel: number | null, kubelet: number | null) =>
  leftOn({ firstBy, kernelLeftBytes: kernel, headroomBytes: kubelet, headroom: null } as NodePanel);

test("headroom is that of whoever acts first, and is named after it", () => {
  const texts = [
    node("kernel", 2 * GI, 3 * GI),
    node("kubelet", 5 * GI, 3 * GI),
    node(null, null, 3 * GI),
    node("kubelet", 5 * GI, -GI),
  ];
  assert.deepEqual(texts.map((each) => each && leftText(each)), [
    "2Gi headroom before an OOM kill",
    "3Gi headroom before eviction",
    "3Gi headroom before eviction",
    "1Gi past eviction",
  ]);
  assert.equal(node(null, null, null), null);
});
