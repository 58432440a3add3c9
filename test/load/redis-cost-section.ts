import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { LimitCharge } from "../../core/charges.ts";
import { RedisCounters } from "../../edge/counters/redis.ts";
import { connectRedis, whenReady } from "../../edge/redis/connect.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { defineScript, runScript } from "../../edge/redis/script.ts";
import { startOwnRedis } from "../harness/redis.ts";
import { STRICT, untilPasses } from "./gate-load.ts";
import type { Work } from "./generator.ts";
import { type Contestant, compare } from "./measure.ts";
import { CONNECTIONS, contestant, type Section, toFigures } from "./section.ts";

const MINIMAL = defineScript(readFileSync(join(import.meta.dirname, "peers", "sliding-window.lua"), "utf8"));
/** Callers that are counted in turn. */
const IDENTIFIERS = 1000;

/**
 * CPU time of Redis for each strict check, compared with that of the least script that counts a sliding window: with one call after the
 * other, and with as many at once as a gate's clients. Then that of a whole gate, with its events and heartbeats. The bounds are goals.
 */
export const redisCost: Section = async (environment, options) => {
  const redis = await startOwnRedis();
  const client = connectRedis({ url: redis.url, clientName: "bench" });
  const policyId = await environment.createPolicy("redis-cost", [STRICT]);
  const [key] = await environment.createKeys(1);
  const authorization = { authorization: `Bearer ${key?.key}` };
  const sidecar = await environment.startSidecar(policyId);
  try {
    await whenReady(client, AbortSignal.timeout(5_000));
    await untilPasses(sidecar.url, authorization);
    const counters = new RedisCounters(client, new RedisKeys());
    const charges = Array.from({ length: IDENTIFIERS }, (_, n): LimitCharge[] => [
      {
        ...STRICT,
        scope: { kind: "name", value: "bench" },
        workspaceId: environment.workspaceId,
        identifier: `key_${n}`,
      },
    ]);
    const checked = (turn: number) => counters.consume({ limits: charges[turn % IDENTIFIERS] ?? [] });
    const minimal = (turn: number) => {
      const nowMs = Date.now();
      const window = Math.floor(nowMs / STRICT.durationMs);
      const name = `minimal:{${turn % IDENTIFIERS}}`;
      const argv = [`${name}:${window}`, `${name}:${window - 1}`, STRICT.limit, STRICT.durationMs];
      return runScript(client, MINIMAL, 2, [...argv, nowMs % STRICT.durationMs, STRICT.cost]);
    };
    const inRedis = (name: string, call: (turn: number) => Promise<unknown>, atOnce: number): Contestant => ({
      name,
      pids: [redis.pid],
      loads: [repeat(call, { atOnce, durationMs: options.durationMs })],
    });
    const together = inRedis(`minimal script, ${CONNECTIONS} at once`, minimal, CONNECTIONS);
    const whole = contestant(options, ({ url }) => ({ url: `${url}/orders/1`, headers: authorization }));
    const gate = { ...whole("Redis per request of a gate, with events", sidecar), pids: [environment.redisPid] };
    const pairs = [
      {
        contestant: inRedis("Redis per strict check, one at a time", checked, 1),
        baseline: inRedis("minimal script, one at a time", minimal, 1),
        max: 1.1,
      },
      {
        contestant: inRedis(`Redis per strict check, ${CONNECTIONS} at once`, checked, CONNECTIONS),
        baseline: together,
        max: 1.1,
      },
      { contestant: gate, baseline: together, max: 1.4 },
    ];
    process.kill(environment.apiServer.pid, "SIGSTOP");
    const results = await compare({
      contestants: pairs,
      rounds: options.rounds,
      onRound: (round) => options.progress(`redisCost: round ${round} of ${options.rounds}`),
    }).finally(() => process.kill(environment.apiServer.pid, "SIGCONT"));
    return toFigures(
      results,
      pairs.map(({ max }) => max),
    );
  } finally {
    client.disconnect();
    await sidecar.stop();
    await redis.stop();
  }
};

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
