import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findRunningDev, writeDevState } from "./dev-state.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-dev-state-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

const state = { pid: process.pid, databaseUrl: "postgres://postern:secret@127.0.0.1:1/postern" };

test("dev state is found after it is published, and only its user can read it", () => {
  writeDevState(dir, state);
  expect(findRunningDev(dir)).toEqual(state);
  expect(statSync(join(dir, "dev.json")).mode & 0o077).toBe(0);
});

test.each(["", "{", '"secret', '{"pid":1', "[]", '{"pid":"1","databaseUrl":"secret"}'])(
  "invalid dev state file (%j) is treated as if postern dev were not running, without an error",
  (text) => {
    writeFileSync(join(dir, "dev.json"), text);
    expect(findRunningDev(dir)).toBeUndefined();
  },
);
