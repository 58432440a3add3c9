import { mkdir, mkdtemp, readlink, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { waitFor } from "../../test/harness/wait.ts";
import { followRootKeys } from "./root-keys.ts";

async function aFolder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "postern-root-keys-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  return dir;
}

async function follow(dir: string) {
  const changes: string[][] = [];
  const log = pino({ level: "silent" });
  const keys = await followRootKeys({ dir, log, onChange: (workspaces) => changes.push([...workspaces].sort()) });
  onTestFinished(() => keys.close());
  return { changes, now: () => Object.fromEntries(keys.current()) };
}

test("root key folder reports only added, changed and removed files", async () => {
  const dir = await aFolder();
  await writeFile(join(dir, "team-a"), "root_a1\n");
  const { now, changes } = await follow(dir);
  expect(now()).toEqual({ "team-a": "root_a1" });
  await writeFile(join(dir, "team-b"), "root_b");
  await waitFor("the new key", async () => now()["team-b"] === "root_b");
  await writeFile(join(dir, "team-a"), "root_a2");
  await waitFor("the changed key", async () => now()["team-a"] === "root_a2");
  await rm(join(dir, "team-b"));
  await waitFor("the removed key", async () => !("team-b" in now()));
  expect(changes).toEqual([["team-b"], ["team-a"], ["team-b"]]);
});

test("root key folder follows symbolic links of a mounted Secret", async () => {
  const dir = await aFolder();
  const version = async (name: string, keys: Readonly<Record<string, string>>) => {
    await mkdir(join(dir, name));
    for (const [workspace, key] of Object.entries(keys)) await writeFile(join(dir, name, workspace), key);
    await symlink(name, join(dir, "..data_tmp"));
    await rename(join(dir, "..data_tmp"), join(dir, "..data"));
  };
  await version("..2026_01", { "team-a": "root_a1" });
  await symlink(join("..data", "team-a"), join(dir, "team-a"));
  const { now } = await follow(dir);
  expect(now()).toEqual({ "team-a": "root_a1" });
  await version("..2026_02", { "team-a": "root_a2" });
  expect(await readlink(join(dir, "..data"))).toBe("..2026_02");
  await waitFor("the key of the new version", async () => now()["team-a"] === "root_a2", { deadlineMs: 15_000 });
});

test("invalid root key file is skipped while other keys stay valid", async () => {
  const dir = await aFolder();
  await writeFile(join(dir, "team-a"), "root_a");
  await writeFile(join(dir, "empty"), "\n");
  await writeFile(join(dir, "two-lines"), "root_1\nroot_2\n");
  await writeFile(join(dir, "huge"), "x".repeat(100_000));
  await writeFile(join(dir, "not a workspace"), "root_n");
  await writeFile(join(dir, ".hidden"), "root_h");
  await mkdir(join(dir, "folder"));
  const { now } = await follow(dir);
  expect(now()).toEqual({ "team-a": "root_a" });
});

test("missing root key folder at startup is an error", async () => {
  const dir = await aFolder();
  await expect(follow(join(dir, "missing"))).rejects.toThrow(/ENOENT/);
});

test("root keys remain valid while their folder disappears briefly", async () => {
  const dir = await aFolder();
  const keys = join(dir, "keys");
  await mkdir(keys);
  await writeFile(join(keys, "team-a"), "root_a1");
  const { now, changes } = await follow(keys);
  await rename(keys, join(dir, "elsewhere"));
  await mkdir(join(dir, "later"));
  await writeFile(join(dir, "later", "team-a"), "root_a2");
  await rename(join(dir, "later"), keys);
  await waitFor("the key of the folder that came back", async () => now()["team-a"] === "root_a2", {
    deadlineMs: 15_000,
  });
  expect(changes).toEqual([["team-a"]]);
});
