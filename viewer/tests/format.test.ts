import assert from "node:assert/strict";
import { test } from "node:test";
import { about, bare, bytes, cores, duration, ordinal, percent, plural } from "../src/format";
import { seconds, signed, time } from "../src/format";

const table = <Value>(render: (value: Value) => string, rows: readonly (readonly [Value, string])[]) =>
  assert.deepEqual(rows.map(([value]) => render(value)), rows.map(([, text]) => text));

test("amounts of memory are written as Kubernetes writes them", () => {
  table(bytes, [
    [0, "0"], [2 ** 40, "1Ti"], [64 * 2 ** 30, "64Gi"], [4196 * 2 ** 20, "4196Mi"],
    [56.5 * 2 ** 30, "57856Mi"], [1.23 * 2 ** 30, "1.2Gi"], [-(2 ** 20), "−1Mi"], [1000, "0.0Mi"],
  ]);
  table(about, [[0, "0"], [19.46 * 2 ** 30, "19.5Gi"], [300.4 * 2 ** 20, "300Mi"], [-(2 ** 30), "−1Gi"]]);
});

test("less than all is never 100 %", () => {
  table(percent, [[1, "100 %"], [0.9999, "99 %"], [0.005, "0.5 %"], [0.0001, "<0.1 %"], [0, "0 %"]]);
});

test("cores have two digits below ten", () => {
  table(cores, [[1000, "1"], [1500, "1.5"], [1250, "1.25"], [12_340, "12.3"]]);
});

test("times are as exact as the step asks for", () => {
  assert.equal(time(1_234_567), "1.235 s");
  assert.equal(time(1_234_567, 1e6), "1 s");
  assert.equal(time(150e6), "2 min 30 s");
  assert.equal(time(3_660e6), "1 h 1 min");
  assert.equal(time(2 * 86_400e6, 3.6e9), "2 d");
  assert.equal(duration(0), "–");
  table(seconds, [[12.345, "12.3 s"], [100, "1 min 40 s"], [7260, "2 h 1 min"]]);
});

test("times are rounded as in the sentences of the server: half to even", () => {
  table(seconds, [[37.25, "37.2 s"], [37.35, "37.4 s"], [102.5, "1 min 42 s"], [103.5, "1 min 44 s"]]);
});

test("ordinals, plurals, signs and bare names", () => {
  table(ordinal, [[1, "1st"], [2, "2nd"], [3, "3rd"], [11, "11th"], [112, "112th"], [1021, "1,021st"]]);
  assert.deepEqual([plural(1, "pod"), plural(0, "pod")], ["1 pod", "0 pods"]);
  assert.equal(plural(2, "class", "classes"), "2 classes");
  assert.equal(signed(-997), "−997");
  assert.equal(bare("shop/cart-0"), "cart-0");
});
