import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { UsageError } from "./command.ts";
import { followed, followFile, sameServer } from "./followed.ts";

let dir = "";
let nowMs = 0;
const lines: string[] = [];
const log = {
  info: (_about: unknown, message: string) => void lines.push(`info ${message}`),
  warn: (about: { reason: string }, message: string) => void lines.push(`warn ${message}: ${about.reason}`),
} as never;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-followed-"));
  nowMs = 0;
  lines.length = 0;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(dir, { recursive: true });
});

const file = (text: string, name = "secret"): string => {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
};

test("value of a reloadable option comes from an option or variable, or from a file, but not from both", () => {
  const path = file("redis://of-file\n");
  const of = (value: string | undefined, from: string | undefined) =>
    followed({ name: "redis-url", value, file: from, log })?.();
  expect([of("redis://given", undefined), of(undefined, path), of("", path)]).toEqual([
    "redis://given",
    "redis://of-file",
    "redis://of-file",
  ]);
  expect(of(undefined, undefined)).toBe(undefined);
  expect(() => of("redis://given", path)).toThrow(
    new UsageError("--redis-url and --redis-url-file exclude each other"),
  );
});

test("missing or empty reloadable file is reported at startup, without its content", () => {
  const at = (path: string) => () => followFile(path, { name: "redis-url-file", log });
  expect(at(join(dir, "none"))).toThrow(
    `cannot open "${join(dir, "none")}": it does not exist; correct --redis-url-file`,
  );
  expect(at(file(" \n"))).toThrow("is empty");
});

test("reloadable file that Kubernetes replaces is read again, at most once a second", () => {
  file("one", "data-1");
  file("two", "data-2");
  const link = join(dir, "link");
  symlinkSync(join(dir, "data-1"), link);
  const value = followFile(link, { name: "x-file", log });
  symlinkSync(join(dir, "data-2"), join(dir, "next"));
  renameSync(join(dir, "next"), link);
  nowMs = 999;
  expect(value()).toBe("one");
  nowMs = 1000;
  expect(value()).toBe("two");
  expect(lines).toEqual(["info --x-file has changed"]);
});

test("unreadable or invalid reloadable file keeps the last value and is reported once", () => {
  const path = file("postgres://me:a@host/db");
  const value = followFile(path, { name: "database-url-file", log, accept: sameServer });
  for (const text of ["not an address with s3cret", "postgres://me:s3cret@other/db", "postgres://me:s3cret@host/db2"]) {
    file(text);
    nowMs += 1000;
    value();
    nowMs += 1000;
    expect(value()).toBe("postgres://me:a@host/db");
  }
  unlinkSync(path);
  nowMs += 1000;
  expect(value()).toBe("postgres://me:a@host/db");
  expect(lines).toHaveLength(3);
  expect(lines.join()).not.toContain("s3cret");
  file("postgres://you:b@host/db?sslmode=disable");
  nowMs += 1000;
  expect(value()).toBe("postgres://you:b@host/db?sslmode=disable");
});

test("invalid content of a reloadable file is not parsed again until it changes", () => {
  const looked: string[] = [];
  const accept = (text: string): string => {
    looked.push(text);
    if (text.startsWith("bad")) throw new Error("bad");
    return text;
  };
  const value = followFile(file("good"), { name: "x-file", log, accept });
  for (const text of ["bad one", "bad one", "bad two", "good", "bad two", "better", "bad one"]) {
    file(text);
    nowMs += 1000;
    expect(value()).toBe(looked.includes("better") ? "better" : "good");
  }
  expect(looked).toEqual(["good", "bad one", "bad two", "bad two", "better", "bad one"]);
});

test("folder in place of a reloadable file, or an empty file, keeps the active value", () => {
  const path = file("good");
  const value = followFile(path, { name: "x-file", log });
  file("");
  nowMs += 1000;
  expect(value()).toBe("good");
  unlinkSync(path);
  mkdirSync(path);
  nowMs += 1000;
  expect(value()).toBe("good");
  expect(lines.map((line) => line.split(": ").at(-1))).toEqual([
    expect.stringContaining("empty"),
    "it is a directory, not a file; correct --x-file (EISDIR)",
  ]);
});
