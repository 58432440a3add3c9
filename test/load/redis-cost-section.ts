import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { LimitCharge } from "../../core/charges.ts";
import { RedisCounters } from "../../edge/counters/redis.ts";
import { BufferedSink } from "../../edge/events/buffer.ts";
import { appendToRedis } from "../../edge/events/redis-sink.ts";
import { connectRedis, type RedisClient, whenReady } from "../../edge/redis/connect.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { runScript } from "../../edge/redis/script.ts";
import { startOwnRedis } from "../harness/redis.ts";
import { type Environment, startSidecar } from "./environment.ts";
import { STRICT, untilKeysPass } from "./gate-load.ts";
import type { Work } from "./generator.ts";
import type { Contestant } from "./measure.ts";
import { findNginx, MISSING, peersOf } from "./peers/start.ts";
import { storeKeys } from "./peers/store-keys.ts";
import {
  CONNECTIONS,
  compareGates,
  contestant,
  type Figure,
  forEachKeyCount,
  requestsOf,
  type Section,
  type SectionOptions,
  Started,
  toFigures,
} from "./section.ts";
import { eventLines } from "./usage-events.ts";

/** Without the bounds that our scripts check, because it is the least that counts. */
const MINIMAL_LUA = readFileSync(join(import.meta.dirname, "peers", "sliding-window.lua"), "utf8");
const MINIMAL = {
  lua: MINIMAL_LUA,
  sha: createHash("sha1").update(MINIMAL_LUA).digest("hex"),
  bounds: { keys: 2, args: 4, argsPerKey: 0, argBytes: 64 },
};
/** Callers that are counted in turn. */
const IDENTIFIERS = 1000;
const WORKSPACE_ID = "ws_bench";

/**
 * CPU time of Redis for each strict check, compared with that of the least script that counts a sliding window: with one call after the
 * other, and with as many at once as a gate's clients, also with the event of each. Then behind a whole gate, compared with behind
 * nginx with Lua, where that is installed. The bounds are goals.
 */
export const redisCost: Section = async (environment, options) => {
  const started = new Started();
  const redis = await started.add(startOwnRedis());
  const client = connectRedis({ url: redis.url, clientName: "bench" });
  try {
    await whenReady(client, AbortSignal.timeout(5_000));
    const pairs = inOneRedis(client, redis.pid, options);
    const results = await compareGates(environment, options, "redisCost", pairs);
    const bounds = pairs.map(({ max }) => max);
    return [...toFigures(results, bounds), ...(await behindGates(environment, started, options))];
  } finally {
    client.disconnect();
    await started.stop();
  }
};

interface Pair {
  readonly contestant: Contestant;
  readonly baseline: Contestant;
  readonly max: number;
}

/** The calls of a gate, and the least script, on one connection to one Redis. */
function inOneRedis(client: RedisClient, pid: number, { durationMs }: SectionOptions): Pair[] {
  const keys = new RedisKeys();
  const counters = new RedisCounters(client, keys);
  const sink = new BufferedSink({ send: (batch) => appendToRedis(client, keys, batch) });
  const charges = Array.from({ length: IDENTIFIERS }, (_, n): LimitCharge[] => [
    { ...STRICT, scope: { kind: "name", value: "bench" }, workspaceId: WORKSPACE_ID, identifier: `key_${n}` },
  ]);
  const checked = (turn: number) => counters.consume({ limits: charges[turn % IDENTIFIERS] ?? [] });
  const [event = ""] = eventLines({ workspaceId: WORKSPACE_ID, apiId: "api_bench", keys: IDENTIFIERS }, 1);
  const recorded = async (turn: number) => {
    await checked(turn);
    sink.addLine(WORKSPACE_ID, event);
  };
  /** Its events are not read, so those of a round go before the next. */
  const emptied = (work: Work): Work => {
    return async () => {
      await client.unlink(keys.events(WORKSPACE_ID));
      await client.set(keys.eventsQuota(WORKSPACE_ID), "1000000000000");
      return work();
    };
  };
  const minimal = (turn: number) => {
    const nowMs = Date.now();
    const window = Math.floor(nowMs / STRICT.durationMs);
    const name = `minimal:{${turn % IDENTIFIERS}}`;
    const argv = [`${name}:${window}`, `${name}:${window - 1}`, STRICT.limit, STRICT.durationMs];
    return runScript(client, MINIMAL, 2, [...argv, nowMs % STRICT.durationMs, STRICT.cost]);
  };
  const by = (name: string, work: Work): Contestant => ({ name, pids: [pid], loads: [work] });
  const one = { atOnce: 1, durationMs };
  const many = { atOnce: CONNECTIONS, durationMs };
  const least = by(`least script, ${CONNECTIONS} at once`, repeat(minimal, many));
  return [
    {
      contestant: by("Redis per strict check, one at a time", repeat(checked, one)),
      baseline: by("least script, one at a time", repeat(minimal, one)),
      max: 1.1,
    },
    {
      contestant: by(`Redis per strict check, ${CONNECTIONS} at once`, repeat(checked, many)),
      baseline: least,
      max: 1.1,
    },
    {
      contestant: by("with the events", emptied(repeat(recorded, many))),
      baseline: least,
      max: 1.4,
    },
  ];
}

async function behindGates(environment: Environment, started: Started, options: SectionOptions): Promise<Figure[]> {
  const programs = await findNginx();
  if (programs === undefined) {
    options.progress(`redisCost: what is behind whole gates is left out, ${MISSING}`);
    return [];
  }
  const nginx = peersOf(programs);
  const keys = await environment.keys(Math.max(...options.keyCounts));
  const redis = await started.add(startOwnRedis());
  await storeKeys(redis.url, keys);
  const app = await started.add(nginx.app());
  const policyId = await environment.createPolicy("redis-cost", [STRICT]);
  const gate = await started.add(startSidecar(environment, { policyId, upstream: app }));
  const lua = await started.add(nginx.lua(app, redis.url));
  for (const { url } of [gate, lua]) await untilKeysPass(url, keys);
  return forEachKeyCount(options, async (count) => {
    const requests = requestsOf(keys.slice(0, count));
    const whole = contestant(options, ({ url }) => ({ url: `${url}/orders/1`, requests }));
    const pair = {
      contestant: { ...whole("Redis per request of a gate", gate), pids: [environment.redisPid] },
      baseline: { ...whole("of nginx + lua", lua), pids: [redis.pid] },
    };
    return toFigures(await compareGates(environment, options, "redisCost", [pair]), [1]);
  });
}

/** Calls for so long, each time with the next number, with `atOnce` calls under way. */
function repeat(
  call: (turn: number) => Promise<unknown>,
  { atOnce, durationMs }: { atOnce: number; durationMs: number },
): Work {
  let turn = 0;
  return async () => {
    const startedAt = performance.now();
    const first = turn;
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        while (performance.now() - startedAt < durationMs) {
          turn += 1;
          await call(turn);
        }
      }),
    );
    const requests = turn - first;
    return { requests, requestsPerSecond: (1000 * requests) / (performance.now() - startedAt), p99Ms: Number.NaN };
  };
}
