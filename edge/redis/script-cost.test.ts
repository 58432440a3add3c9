import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type OwnRedis, startOwnRedis } from "../../test/harness/redis.ts";
import { waitFor } from "../../test/harness/wait.ts";
import * as counters from "../counters/scripts.ts";
import * as credits from "../credits/scripts.ts";
import * as budget from "../events/redis-budget.ts";
import * as sink from "../events/redis-sink.ts";
import * as source from "../events/redis-source.ts";
import * as gateUsers from "../gate-users/redis.ts";
import { POD_SCRIPTS } from "../load-scripts.ts";
import * as pods from "../pods/redis.ts";
import { RedisRecordWriter } from "../projection/redis-writer.ts";
import * as projection from "../projection/scripts.ts";
import { overrideRecordId } from "../records.ts";
import { podAclRules } from "./acl.ts";
import { RedisKeys } from "./keys.ts";
import type { Script } from "./script.ts";

/*
 * Redis runs one script at a time, and the user of a gate may run every loaded script with any arguments on keys that it has filled. Each
 * script therefore rejects arguments that Postern never sends, and its most expensive accepted call takes at most 10 ms of Redis time.
 */

const COST_MS_MAX = 10;
/** The minimum of several rounds excludes the load of the machine. */
const ROUNDS = 5;

const MODULES = { ...counters, ...credits, ...budget, ...sink, ...source, ...gateUsers, ...pods, ...projection };
const isScript = (value: unknown): value is Script => typeof value === "object" && value !== null && "lua" in value;
const SCRIPTS = Object.entries(MODULES).flatMap(([name, value]) => (isScript(value) ? [{ name, script: value }] : []));

const WORKSPACE = "ws_1";
const GATE = { policyId: "pol_1", podId: "shop/orders-1" };
const keys = new RedisKeys();
const MAX = String(Number.MAX_SAFE_INTEGER);

interface Call {
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

let own: OwnRedis;
let raw: Redis;
let gate: Redis;
let serial = 0;

beforeAll(async () => {
  own = await startOwnRedis();
  raw = new Redis(own.url);
  await raw.call("ACL", "SETUSER", "gate", ...podAclRules({ workspaceId: WORKSPACE, gate: GATE }), ">secret");
  gate = new Redis(own.url.replace("//", "//gate:secret@"), { protocol: 2 });
  await waitFor("the connection", () => gate.status === "ready");
  for (const { script } of SCRIPTS) await raw.script("LOAD", script.lua);
}, 60_000);
afterAll(async () => {
  raw.disconnect();
  gate.disconnect();
  await own.stop();
});

const counter = (name: string | number): string => keys.counter(WORKSPACE, `${++serial}/${name}`, 60_000);
const counterKeys = (count: number): string[] => Array.from({ length: count }, (_, i) => counter(i));
const repeat = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const FAR = String(Date.now() + 3_600_000);
const { CONSUME_KEYS_MAX, CONSUME_REQUESTS_MAX, CONSUME_TEXT_BYTES_MAX, SYNC_KEYS_MAX } = counters;

/** Returns a call with the maximum number of limits, each with its own counter. */
function consume(ofKeys: readonly string[], { windowMs = 60_000 } = {}): Call {
  const each = ofKeys.length / CONSUME_REQUESTS_MAX;
  const text = `${[each, each, 0, "-", "-", ...repeat(each, () => windowMs)].join(" ")} ${repeat(each, (i) => `${i + 1} ${MAX} 1 `).join("")}`;
  return {
    keys: ofKeys,
    args: [...repeat(CONSUME_REQUESTS_MAX, () => text), ...repeat(CONSUME_REQUESTS_MAX, () => FAR)],
  };
}

/** A small hash is read field by field. */
async function filled(key: string, fields: number): Promise<string> {
  const pipeline = gate.pipeline();
  for (let i = 0; i < fields; i++) pipeline.hincrby(key, `a field with a long name of which there are many, ${i}`, MAX);
  for (const field of ["previous", "current", "window"]) pipeline.hincrby(key, field, 1);
  await pipeline.exec();
  return key;
}

interface Worst {
  readonly script: Script;
  readonly what: string;
  /** Called before each round. */
  readonly prepare: () => Promise<Call> | Call;
}

const WORST: readonly Worst[] = [
  {
    script: counters.CONSUME,
    what: "on counters that begin",
    prepare: () => consume(counterKeys(CONSUME_KEYS_MAX)),
  },
  {
    script: counters.CONSUME,
    what: "on one counter, named again and again, with many fields",
    prepare: async () => {
      const key = await filled(counter("small"), 120);
      return consume(
        repeat(CONSUME_KEYS_MAX, () => key),
        { windowMs: 1 },
      );
    },
  },
  {
    script: counters.CONSUME,
    what: "on keys that are no counters",
    prepare: async () => {
      const wrong = counterKeys(CONSUME_KEYS_MAX);
      await raw.mset(...wrong.flatMap((key) => [key, "no counter"]));
      return consume(wrong);
    },
  },
  {
    script: counters.CONSUME,
    what: "with very many charges on one counter",
    prepare: () => {
      const head = "1 1 0 - - 60000 ";
      const charges = Math.floor((CONSUME_TEXT_BYTES_MAX - head.length) / "1 9 1 ".length);
      return { keys: [counter("charged")], args: [`${head}${"1 9 0 ".repeat(charges)}`, FAR] };
    },
  },
  ...["1", "1 ", "9".repeat(20)].map((crafted) => ({
    script: counters.CONSUME,
    what: `with a crafted text of ${JSON.stringify(crafted)}`,
    prepare: () => {
      const text = crafted.repeat(CONSUME_TEXT_BYTES_MAX).slice(0, CONSUME_TEXT_BYTES_MAX);
      return { keys: counterKeys(1), args: [text, FAR] };
    },
  })),
  {
    script: counters.CONSUME,
    what: "that spends credits",
    prepare: () => {
      const all = repeat(CONSUME_REQUESTS_MAX, (i) => [
        ...counterKeys(13),
        keys.credits(WORKSPACE, `key_${i}`),
        keys.creditsDirty(WORKSPACE),
        keys.creditsLoad(WORKSPACE),
      ]).flat();
      const text = `16 13 0 1 key_1 ${"60000 ".repeat(13)}${repeat(13, (i) => `${i + 1} 9 1 `).join("")}`;
      return {
        keys: all,
        args: [...repeat(CONSUME_REQUESTS_MAX, () => text), ...repeat(CONSUME_REQUESTS_MAX, () => FAR)],
      };
    },
  },
  {
    script: counters.GIVE_BACK,
    what: "",
    prepare: async () => ({ keys: [await filled(counter("x"), 120)], args: ["1", "1"] }),
  },
  {
    script: counters.SPEND_CREDITS,
    what: "of a counter that is not loaded",
    prepare: async () => ({ keys: [await filled(keys.credits(WORKSPACE, `key_${++serial}`), 120)], args: ["1", FAR] }),
  },
  {
    script: counters.SYNC_COUNTS,
    what: "on counters that begin",
    prepare: () => ({
      keys: counterKeys(SYNC_KEYS_MAX),
      args: repeat(SYNC_KEYS_MAX, () => ["1000", String(Math.floor(Date.now() / 1000)), MAX]).flat(),
    }),
  },
  {
    script: counters.SYNC_COUNTS,
    what: "on one counter with many fields",
    prepare: async () => {
      const key = await filled(counter("small"), 120);
      return { keys: repeat(SYNC_KEYS_MAX, () => key), args: repeat(SYNC_KEYS_MAX, () => ["1", MAX, MAX]).flat() };
    },
  },
  {
    script: projection.POSITION,
    what: "of a long feed",
    prepare: async () => {
      const [mark, changes] = [keys.projectionState(WORKSPACE), keys.changes(WORKSPACE)];
      const pipeline = raw.pipeline();
      for (let i = 0; i < 5_000; i++) pipeline.xadd(changes, "*", "p", "prj_1", "k", "heartbeat");
      await pipeline.exec();
      return { keys: [mark, changes], args: [] };
    },
  },
  {
    script: pods.REPORT,
    what: "of the largest size",
    prepare: () => ({
      keys: [keys.podsOwn(WORKSPACE, GATE.policyId, GATE.podId)],
      args: [GATE.podId, "x".repeat(pods.REPORT.bounds.argBytes), "60000"],
    }),
  },
  {
    script: pods.COUNT_ALIVE,
    what: "of very many pods, all of them gone",
    prepare: async () => {
      const alive = keys.podsAlive(WORKSPACE, GATE.policyId);
      for (let at = 0; at < 20; at++) {
        await gate.zadd(alive, ...repeat(10_000, (i) => ["1", `pod ${++serial} ${i}`]).flat());
      }
      return { keys: [alive], args: ["x".repeat(512), "15000"] };
    },
  },
  {
    script: sink.APPEND,
    what: "of the largest size",
    prepare: () => ({
      keys: [keys.events(WORKSPACE), keys.eventsQuota(WORKSPACE)],
      args: ["131072", "512", "1.25", "x".repeat(sink.APPEND.bounds.argBytes)],
    }),
  },
  {
    script: sink.TAKE_QUOTA,
    what: "of a room that is none",
    prepare: async () => {
      await raw.set(keys.eventsQuota(WORKSPACE), "x".repeat(1_000_000));
      return { keys: [keys.eventsQuota(WORKSPACE)], args: ["131072", MAX] };
    },
  },
];

/** Announces 300 changes of records with the longest ids and leaves the resulting stream and history. */
async function announceMany(): Promise<void> {
  const writer = new RedisRecordWriter(raw, keys);
  await writer.begin("prj_many", [WORKSPACE]);
  const refs = repeat(300, (i) => ({
    workspaceId: WORKSPACE,
    kind: "override" as const,
    id: overrideRecordId("rlns_1", `${i} `.padEnd(512, "\u{20ac}")),
  }));
  await writer.write({ projectionId: "prj_many", version: 1, writes: refs.map((ref) => ({ ref, data: undefined })) });
}

/** Commands of about 20 kB, which no script limits. */
const DIRECT: readonly { readonly what: string; readonly command: readonly [string, ...string[]] }[] = [
  {
    what: "XREAD of its change stream, named 500 times",
    command: ["xread", "streams", ...repeat(500, () => keys.changes(WORKSPACE)), ...repeat(500, () => "0")],
  },
  { what: "XREVRANGE of its change stream", command: ["xrevrange", keys.changes(WORKSPACE), "+", "-"] },
  {
    what: "HMGET of one entry of the history, named 2,000 times",
    command: ["hmget", keys.history(WORKSPACE), ...repeat(2_000, () => "299")],
  },
];

test.each(DIRECT)(
  "Redis user of a gate can block Redis for at most 10 ms with $what",
  async ({ command: [name, ...args] }) => {
    await announceMany();
    const costs: number[] = [];
    for (let round = 0; round < ROUNDS; round++) costs.push(await costMs(() => gate.call(name, ...args), name));
    expect(Math.min(...costs)).toBeLessThan(COST_MS_MAX);
  },
);

test("Redis ACL of a gate denies reading whole streams, and reading one field many times in a command", async () => {
  const denied: readonly (readonly [string, ...string[]])[] = [
    ["hgetall", keys.history(WORKSPACE)],
    ["xrange", keys.changes(WORKSPACE), "-", "+"],
    ["hmget", keys.record({ workspaceId: WORKSPACE, kind: "overridePatterns", id: "rlns_1" }).key, "*", "*"],
  ];
  for (const [name, ...args] of denied) await expect(gate.call(name, ...args)).rejects.toThrow("NOPERM");
});

/** Records and the change stream are readable outside scripts. */
const run = (script: Script, { keys: ofKeys, args }: Call): Promise<unknown> =>
  gate.call(script === projection.POSITION ? "evalsha_ro" : "evalsha", script.sha, ofKeys.length, ...ofKeys, ...args);

/** Returns the duration of one call as measured by Redis. */
async function costMs(work: () => Promise<unknown>, command = "evalsha\\w*"): Promise<number> {
  await raw.config("RESETSTAT");
  await work();
  const stats = await raw.info("commandstats");
  const calls = stats.matchAll(new RegExp(`^cmdstat_${command}:calls=1,usec=(\\d+)`, "gm"));
  const usec = [...calls].map(([, found]) => Number(found));
  expect(usec).toHaveLength(1);
  return (usec[0] ?? Number.POSITIVE_INFINITY) / 1000;
}

test("script cost tests contain the most expensive call of every pod script", () => {
  expect(new Set(WORST.map(({ script }) => script))).toEqual(new Set(POD_SCRIPTS));
});

test.each(WORST.map((worst) => ({ ...worst, name: nameOf(worst.script) })))(
  "Redis user of a gate can block Redis for at most 10 ms with $name $what",
  async ({ script, prepare }) => {
    const costs: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const call = await prepare();
      costs.push(await costMs(() => run(script, call).catch(isNotTooLarge)));
    }
    expect(Math.min(...costs)).toBeLessThan(COST_MS_MAX);
  },
);

const isNotTooLarge = (error: Error): void => expect(error.message).not.toContain("too large");

function nameOf(script: Script): string {
  return SCRIPTS.find((each) => each.script === script)?.name ?? "";
}

/**
 * Returns the largest call within the bounds of a script, on counters of the gate, with one argument of the longest length that the test
 * can afford.
 */
function largest({ bounds }: Script): Call {
  const args = bounds.args + bounds.argsPerKey * bounds.keys;
  return {
    keys: counterKeys(bounds.keys),
    args: repeat(args, (i) => (i === 0 ? "1".repeat(Math.min(bounds.argBytes, 100_000)) : "1")),
  };
}

test.each(SCRIPTS)("script $name takes at most 10 ms on the largest call of a gate", async ({ script }) => {
  const costs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const call = largest(script);
    costs.push(await costMs(() => run(script, call).catch(isNotTooLarge)));
  }
  expect(Math.min(...costs)).toBeLessThan(COST_MS_MAX);
});

test.each(SCRIPTS)("script $name rejects an extra key, argument or byte without side effects", async ({ script }) => {
  const { keys: ofKeys, args } = largest(script);
  const { argBytes } = script.bounds;
  const more: Call[] = [
    { keys: [...ofKeys, ...counterKeys(1)], args: [...args, ...repeat(script.bounds.argsPerKey, () => "1")] },
    { keys: ofKeys, args: [...args, "1"] },
    ...(args.length > 0 && argBytes <= 1_000_000
      ? [{ keys: ofKeys, args: ["1".repeat(argBytes + 1), ...args.slice(1)] }]
      : []),
  ];
  for (const call of more) {
    await expect(run(script, call)).rejects.toThrow("too large a call of this script");
    expect(await raw.exists(...ofKeys)).toBe(0);
  }
});
