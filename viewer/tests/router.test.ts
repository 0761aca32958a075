import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { here, href, parse } from "../src/app/router";

const place = { hash: "" };
Object.defineProperty(globalThis, "location", { value: place });

beforeEach(() => {
  place.hash = "";
});

test("an address has a view, its parts and a query", () => {
  const route = parse("#/pod/shop/cart%2F0?source=a&q=x?y");
  assert.equal(route.view, "pod");
  assert.deepEqual(route.parts, ["shop", "cart/0"]);
  assert.deepEqual(Object.fromEntries(route.query), { source: "a", q: "x?y" });
});

test("a part that cannot be decoded stays as it is", () => {
  assert.deepEqual(parse("#/pod/%E0%A4%A").parts, ["%E0%A4%A"]);
});

test("an empty address is the first view", () => {
  assert.deepEqual([parse("").view, parse("#").view, parse("#/").view], ["", "", ""]);
});

test("a link keeps the source and leaves out what is empty", () => {
  place.hash = "#/check?source=two&q=web";
  assert.equal(here().view, "check");
  const link = href("pod", ["shop", "a b"], { all: true, q: "", none: null });
  assert.equal(link, "#/pod/shop/a%20b?source=two&all=1");
});

test("a link is read back as it was written", () => {
  const route = parse(href("pod", ["a/b", "c?d"], { q: "x&y=z" }));
  assert.deepEqual([route.parts, route.query.get("q")], [["a/b", "c?d"], "x&y=z"]);
});
