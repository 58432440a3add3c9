import { expect, test } from "vitest";
import { UsageError } from "../command.ts";
import { parseCache } from "./cache-options.ts";

const MIB = 1024 * 1024;
const parse = (keys?: string, bytes?: string) =>
  parseCache({ "max-cache-keys": keys, "max-cache-bytes": bytes }, 10 * MIB);

test("both may be left out, and each counts by itself", () => {
  expect(parse()).toEqual({});
  expect(parse("5000")).toEqual({ keys: 5_000 });
  expect(parse(undefined, "1048576")).toEqual({ bytes: MIB });
  expect(parse("1", String(10 * MIB))).toEqual({ keys: 1, bytes: 10 * MIB });
});

test.each([
  { keys: "0" },
  { keys: "-1" },
  { keys: "1e3" },
  { keys: "10000001" },
  { keys: "" },
  { bytes: "1048575" },
  { bytes: "8Mi" },
  { bytes: "" },
])("$keys $bytes is refused", ({ keys, bytes }) => {
  expect(() => parse(keys, bytes)).toThrow(UsageError);
});

test("more than the heap has room for is refused, and the error says how much that is", () => {
  expect(() => parse(undefined, String(10 * MIB + 1))).toThrow(/more than the 10485760 that this heap has room for/);
});
