import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CachedEntry, Known, Projection } from "../../edge/projection/contract.ts";
import { fromContents, toSlices } from "./contents.ts";
import { readSnapshotFile, writeSnapshotFile } from "./file.ts";
import { elapsedMs, hostTimestamp } from "./host-clock.ts";
import { Sealer, unseal } from "./seal.ts";
import { openSnapshot, SNAPSHOT_BYTES_MAX, type SnapshotConfig } from "./snapshot.ts";

const silent = { info: () => {}, warn: () => {} };
const position = { projectionId: "prj_1", n: 7, entryId: "1-7" };

let directory: string;
let config: SnapshotConfig;
const file = () => join(directory, "snapshot");
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "postern-snapshot-"));
  config = {
    directory,
    secret: randomBytes(32).toString("hex"),
    workspaceId: "ws_1",
    policyId: "pol_1",
    prefix: "ps",
    logger: silent,
  };
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const aKey = (id: string): CachedEntry => ({ kind: "key", id, value: { keyId: `key_${id}`, name: "ü".repeat(20) } });

/** A projection with only the members that a snapshot uses. */
function aProjection(records: CachedEntry[], changes: Partial<Known> = {}) {
  const projection = { known: () => ({ position, stalenessMs: 250, records, ...changes }), forgotten: () => 0 };
  const cacheSizes = () => ({ keys: 0, records: records.length, absences: 0 });
  return { ...projection, cacheSizes, isRestored: () => false } as Partial<Projection> as Projection;
}

async function write(records: CachedEntry[], of = config): Promise<void> {
  const kept = (await openSnapshot(of)).keep({
    projection: aProjection(records),
    policy: () => undefined,
    storeNowMs: () => 1_000_000,
    podsAlive: () => 3,
  });
  await kept.close();
}

test("gate restores a snapshot with its age and the Redis clock", async () => {
  await write([aKey("b"), { kind: "role", id: "role_gone", value: undefined }]);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const { restored } = await openSnapshot(config);
  expect(restored).toMatchObject({ position, podsAlive: 3 });
  expect(restored?.stalenessMs()).toBeGreaterThanOrEqual(270);
  expect(restored?.storeNowMs()).toBeGreaterThanOrEqual(1_000_020);
  expect([...(restored?.records ?? [])]).toEqual([
    { kind: "role", id: "role_gone", value: undefined, length: expect.any(Number) },
    { ...aKey("b"), length: expect.any(Number) },
  ]);
});

const spoiled: { what: string; spoil: () => unknown; of?: Partial<SnapshotConfig> }[] = [
  { what: "another secret", spoil: () => {}, of: { secret: "x".repeat(43) } },
  { what: "another workspace", spoil: () => {}, of: { workspaceId: "ws_2" } },
  { what: "another policy", spoil: () => {}, of: { policyId: "pol_2" } },
  { what: "another prefix", spoil: () => {}, of: { prefix: "other" } },
  { what: "parts that only together are the same", spoil: () => {}, of: { prefix: "psws_1", workspaceId: "" } },
  { what: "random bytes", spoil: () => writeFileSync(file(), randomBytes(5_000)) },
  { what: "an empty file", spoil: () => writeFileSync(file(), "") },
  { what: "a file without its last byte", spoil: () => truncateSync(file(), readFileSync(file()).length - 1) },
  {
    what: "a file with a byte more",
    spoil: () => writeFileSync(file(), Buffer.concat([readFileSync(file()), Buffer.alloc(1)])),
  },
  { what: "a file of another format", spoil: () => writeFileSync(file(), readFileSync(file()).fill("2", 17, 18)) },
  { what: "10 GB", spoil: () => truncateSync(file(), 10 * 1024 ** 3) },
  {
    what: "a link to the file itself",
    spoil: () => {
      renameSync(file(), join(directory, "elsewhere"));
      symlinkSync(join(directory, "elsewhere"), file());
    },
  },
  {
    what: "a link to endless bytes",
    spoil: () => {
      rmSync(file());
      symlinkSync("/dev/zero", file());
    },
  },
  {
    what: "a pipe",
    spoil: () => {
      rmSync(file());
      execFileSync("mkfifo", [file()]);
    },
  },
  {
    what: "a directory",
    spoil: () => {
      rmSync(file());
      mkdirSync(file());
    },
  },
];

test.each(spoiled)("gate starts empty without an error when the snapshot has $what", async ({ spoil, of }) => {
  await write([aKey("a")]);
  expect((await openSnapshot(config)).restored).toBeDefined();
  spoil();
  const sinceMs = performance.now();
  expect((await openSnapshot({ ...config, ...of })).restored).toBeUndefined();
  expect(performance.now() - sinceMs).toBeLessThan(1_500);
});

test("snapshot with any flipped bit is rejected", async () => {
  await write([aKey("a")]);
  const bytes = readFileSync(file());
  const seal = { secret: config.secret, owner: ["any"] };
  const sealer = new Sealer(seal);
  const whole = Buffer.concat([sealer.head, sealer.add("contents"), sealer.end()]);
  expect(unseal(whole, seal)?.toString()).toBe("contents");
  for (let at = 0; at < whole.length; at++) {
    const changed = Buffer.from(whole);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    expect([at, unseal(changed, seal)]).toEqual([at, undefined]);
  }
  // Two files begin differently, so that neither reveals the other's contents.
  await new Promise((resolve) => setTimeout(resolve, 600));
  await write([aKey("a")]);
  expect(readFileSync(file()).subarray(19, 60)).not.toEqual(bytes.subarray(19, 60));
});

describe("snapshot writes", () => {
  test("failed snapshot write keeps the previous file and removes the partial one", async () => {
    await writeSnapshotFile(directory, [Buffer.from("earlier")]);
    function* failing() {
      yield Buffer.from("half");
      throw Object.assign(new Error("no room"), { code: "ENOSPC" });
    }
    await expect(writeSnapshotFile(directory, failing())).rejects.toThrow("no room");
    expect((await readSnapshotFile(directory, 100))?.toString()).toBe("earlier");
    expect(readdirSync(directory)).toEqual(["snapshot"]);
  });

  test.each(["snapshot", "snapshot.next"])("snapshot write does not follow a symbolic link named %s", async (name) => {
    const elsewhere = join(directory, "elsewhere");
    writeFileSync(elsewhere, "of another");
    symlinkSync(elsewhere, join(directory, name));
    await writeSnapshotFile(directory, [Buffer.from("ours")]);
    expect(readFileSync(elsewhere, "utf8")).toBe("of another");
    expect((await readSnapshotFile(directory, 100))?.toString()).toBe("ours");
  });

  test("snapshot writes records in small slices, prioritized by need, within the size limit", () => {
    const records = [
      ...Array.from({ length: 50_000 }, (_, i) => aKey(`hash-${i}`)),
      { kind: "role" as const, id: "r", value: { id: "r" } },
    ];
    const taken = hostTimestamp();
    if (taken === undefined) throw new Error("this kernel tells no boot");
    const written = { records: 0, bytes: 0, omitted: 0 };
    const bytesMax = 1024 * 1024;
    const slices = [
      ...toSlices({ position, stalenessMs: 0, records, taken, storeMs: 0, podsAlive: 0 }, bytesMax, written),
    ];
    expect(Math.max(...slices.map((slice) => slice.length))).toBeLessThan(33 * 1024);
    const contents = Buffer.from(slices.join(""));
    expect(contents.length).toBe(written.bytes);
    expect(written.bytes).toBeLessThanOrEqual(bytesMax);
    expect(written.records + written.omitted).toBe(records.length);
    expect(written.omitted).toBeGreaterThan(0);
    const [first] = fromContents(contents, taken)?.records ?? [];
    expect(first).toMatchObject({ kind: "role", id: "r" });
    expect(SNAPSHOT_BYTES_MAX).toBeLessThan(20 * 1024 * 1024);
  });
});

describe("elapsed time since a snapshot", () => {
  const since = { bootId: "a", monotonicMs: 1_000, wallMs: 50_000 };
  test.each([
    { name: "both clocks went on", now: { bootId: "a", monotonicMs: 1_500, wallMs: 50_500 }, is: 500 },
    { name: "the clock was set back", now: { bootId: "a", monotonicMs: 1_500, wallMs: 10_000 }, is: 500 },
    { name: "the host slept", now: { bootId: "a", monotonicMs: 1_500, wallMs: 80_000 }, is: 30_000 },
    { name: "the host was started again", now: { bootId: "b", monotonicMs: 1_500, wallMs: 50_500 }, is: undefined },
    { name: "it is another host's count", now: { bootId: "a", monotonicMs: 900, wallMs: 50_500 }, is: undefined },
    { name: "the kernel tells no boot", now: undefined, is: undefined },
  ])("snapshot age is measured correctly, or unknown: $name", ({ now, is }) => expect(elapsedMs(since, now)).toBe(is));
});
