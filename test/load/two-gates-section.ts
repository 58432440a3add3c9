import { startSidecar } from "./environment.ts";
import { STRICT, untilPasses } from "./gate-load.ts";
import { type Contestant, median } from "./measure.ts";
import { findNginx, peersOf } from "./peers/start.ts";
import { CONNECTIONS, compareGates, type Section, Started, toFigures } from "./section.ts";
import type { Running } from "./stack.ts";

/** Two gates that share the load, and one that has it alone, each with a strict limit and the Redis beside it: CPU of both, and the rate. */
export const twoGates: Section = async (environment, options) => {
  const programs = await findNginx();
  const started = new Started();
  try {
    const app = programs === undefined ? environment.upstream : await started.add(peersOf(programs).app());
    const running: Running[] = [];
    const policyId = await environment.createPolicy("two-gates", [STRICT]);
    const [key] = await environment.keys(1);
    const headers = { authorization: `Bearer ${key?.key}` };
    for (let each = 0; each < 2; each += 1) {
      running.push(await started.add(startSidecar(environment, { policyId, upstream: app })));
    }
    for (const { url } of running) await untilPasses(url, headers);
    const gates = (name: string, sidecars: readonly Running[]): Contestant => ({
      name,
      pids: [...sidecars.map(({ pid }) => pid), environment.redisPid],
      loads: sidecars.map(({ url }) => ({
        url: `${url}/orders/1`,
        headers,
        connections: CONNECTIONS / sidecars.length,
        durationMs: options.durationMs,
      })),
    });
    const baseline = gates("one gate and Redis", running.slice(0, 1));
    const contestants = [{ contestant: gates("two gates and Redis", running), baseline }];
    const results = await compareGates(environment, options, "twoGates", contestants);
    const alone = results[0]?.baselineSamples.map(({ requestsPerSecond }) => requestsPerSecond) ?? [];
    return toFigures(results, [1.15]).map((figure) => ({
      ...figure,
      detail: `${figure.detail}, one alone ${median(alone).toFixed(0)} requests/s`,
    }));
  } finally {
    await started.stop();
  }
};
