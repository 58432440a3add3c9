import { expect, test } from "vitest";
import { compileHeadReader } from "./head.ts";
import { rememberName } from "./known-names.ts";

test("header name cache has a fixed size and keeps common names", () => {
  const known = new Map<string, number>();
  for (let i = 0; i < 10_000; i++) rememberName(known, `X-Random-${i}`, i);
  expect(known.size).toBeLessThanOrEqual(1024);
  rememberName(known, "Host", 7);
  expect(known.get("Host")).toBe(7);
});

test("header name cache excludes long names", () => {
  const known = new Map<string, number>();
  rememberName(known, "x".repeat(1_000), 1);
  expect(known.size).toBe(0);
});

test("request head is parsed the same after any number of other header names", () => {
  const readHead = compileHeadReader([{ in: "header", name: "X-API-Key" }]);
  const head = ["Host", "a", "X-API-Key", "secret", "X_Postern_Key_Id", "forged", "X-Own", "1"];
  const first = readHead(head, "1.1");
  for (let i = 0; i < 5_000; i++) readHead(["Host", "a", `X-Other-${i}`, "1"], "1.1");
  expect(readHead(head, "1.1")).toEqual(first);
  expect(first).toMatchObject({ credential: "secret", forwarded: ["host", "a", "X-Own", "1"] });
});
