import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { curlLine, shellQuoted } from "./curl-line.ts";

const printed = (argument: string): string =>
  execFileSync("/bin/sh", ["-c", `printf %s ${shellQuoted(argument)}`], { encoding: "utf8" });

test.each(["plain", "with space", "it's", "$(reboot)", "`id`", 'say "no"', "line\nbreak", "ünï", "-n", "", "a;b|c>d"])(
  "shell quoting keeps %j as one argument",
  (argument) => expect(printed(argument)).toBe(argument),
);

test("shell quoting makes any text a single argument", () => {
  const text = fc.string({ unit: "grapheme" }).filter((value) => !value.includes("\0"));
  fc.assert(
    fc.property(text, (argument) => printed(argument) === argument),
    { numRuns: 30 },
  );
});

test("generated curl command quotes the request body", () => {
  const line = curlLine({
    origin: "http://127.0.0.1:8080",
    procedure: "apis.createApi",
    rootKey: "postern_1",
    body: { name: "o'clock" },
  });
  expect(line).toContain(`-d '{"name":"o'\\''clock"}'`);
  expect(line).toContain("http://127.0.0.1:8080/v2/apis.createApi");
});
