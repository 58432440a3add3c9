import { expect, test } from "vitest";
import { UsageError } from "../command.ts";
import { parseCache } from "./cache-options.ts";

const MIB = 1024 * 1024;
const parse = (keys?: string, bytes?: string) =>
  parseCache({ "max-cache-keys": keys, "max-cache-bytes": bytes }, 10 * MIB);

test("both cache options are optional and independent", () => {
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
])("cache options $keys $bytes are rejected", ({ keys, bytes }) => {
  expect(() => parse(keys, bytes)).toThrow(UsageError);
});

test("cache larger than the heap allows is rejected, and the error names the maximum", () => {
  expect(() => parse(undefined, String(10 * MIB + 1))).toThrow(/more than this heap allows \(10485760\)/);
});
