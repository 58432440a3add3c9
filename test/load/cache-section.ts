import { createPolicy, startSidecar } from "./environment.ts";
import { untilPasses } from "./gate-load.ts";
import { type Contestant, compare, median } from "./measure.ts";
import { findNginx, peersOf } from "./peers/start.ts";
import { CONNECTIONS, type Figure, type Section, Started, timed, toFigures } from "./section.ts";
import { seededKey } from "./seed.ts";
import { openSeeded } from "./store-sections.ts";

const CACHED = 5_000;
/** So many others come between two uses of a key that neither it nor its record is kept. */
const IN_TURN = 100_000;
const TURNS = 2_000;

/** What it costs a gate, and the Redis beside it, when a key is not in its cache: a million keys, of which it keeps 5,000. */
export const cache: Section = async (environment, options) => {
  const programs = await findNginx();
  const started = new Started();
  const { storedKeys, progress } = options;
  const seeded = await openSeeded(environment, { name: "cache", count: storedKeys[0] ?? 0, progress });
  const { stack, apiId, count } = seeded;
  try {
    const app = programs === undefined ? environment.upstream : await started.add(peersOf(programs).app());
    const policyId = await createPolicy(stack, { apiId, name: "cache", ratelimits: [] });
    const main = ["cli/main.ts", "sidecar", "--max-cache-keys", String(CACHED)];
    const gate = await started.add(startSidecar(stack, { policyId, upstream: app, main }));
    const keys = (many: number) =>
      Array.from({ length: many }, (_, n) => `Bearer ${seededKey(apiId, Math.floor((n * count) / many))}`);
    const [kept, others] = [keys(CACHED / 2), keys(Math.min(count, IN_TURN))];
    // Until the projection is complete, keys that are missing in Redis are not decided.
    for (let n = 0; n < others.length; n += 500) await untilPasses(gate.url, { authorization: others[n] ?? "" });
    const asked = (name: string, authorizations: readonly string[], pid: number): Contestant => ({
      name,
      pids: [pid],
      loads: [
        {
          url: `${gate.url}/orders/1`,
          requests: authorizations.map((authorization) => ({ authorization })),
          connections: CONNECTIONS,
          durationMs: options.durationMs,
        },
      ],
    });
    const results = await compare({
      contestants: [
        {
          contestant: asked(`key not in the cache (${CACHED} of ${count})`, others, gate.pid),
          baseline: asked("key in the cache", kept, gate.pid),
        },
        {
          contestant: asked("Redis, key not in the cache", others, stack.redisPid),
          baseline: asked("a gate, key in the cache", kept, gate.pid),
        },
      ],
      rounds: options.rounds,
      onRound: (round) => options.progress(`cache: round ${round} of ${options.rounds}`),
    });
    return [...toFigures(results, [3, 1]), await latency(gate.url, { kept, others })];
  } finally {
    await started.stop();
  }
};

async function latency(url: string, { kept, others }: Record<"kept" | "others", readonly string[]>): Promise<Figure> {
  const times = { kept: [] as number[], others: [] as number[] };
  const passMs = (authorization: string) =>
    timed(async () => (await fetch(`${url}/orders/1`, { headers: { authorization } })).arrayBuffer());
  for (let turn = 0; turn < TURNS; turn += 1) {
    times.kept.push(await passMs(kept[turn % 100] ?? ""));
    times.others.push(await passMs(others[(turn * 31) % others.length] ?? ""));
  }
  const [keptMs, othersMs] = [median(times.kept), median(times.others)];
  return {
    name: "a request with a key that is not in the cache, one at a time",
    unit: "ratio",
    value: othersMs / keptMs,
    max: 2.5,
    detail: `medians: ${othersMs.toFixed(3)} ms, ${keptMs.toFixed(3)} ms in the cache`,
  };
}
