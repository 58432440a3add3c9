import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { startSidecar } from "./environment.ts";
import { STRICT, untilKeysPass } from "./gate-load.ts";
import { type LoadRequest, sendLoad } from "./generator.ts";
import { median } from "./measure.ts";
import { findNginx, peersOf } from "./peers/start.ts";
import {
  CONNECTIONS,
  type Figure,
  forEachKeyCount,
  requestsOf,
  type Section,
  type SectionOptions,
  Started,
} from "./section.ts";
import type { Running } from "./stack.ts";

const run = promisify(execFile);

/** The part of the highest rate at which a gate's latency is looked at. */
const SHARE = 0.7;

interface Steady {
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly requestsPerSecond: number;
}

/**
 * How much slower than the median the slowest hundredth of requests is, at 70 % of the highest rate; beside it what nginx does at
 * the same rate, because on a shared machine others cause most of it. The bounds are goals.
 */
export const steady: Section = async (environment, options) => {
  const programs = await findNginx();
  const nginx = programs && peersOf(programs);
  const keys = await environment.keys(Math.max(...options.keyCounts));
  const started = new Started();
  try {
    const app = nginx === undefined ? environment.upstream : await started.add(nginx.app());
    const bare = nginx === undefined ? undefined : await started.add(nginx.bare(app));
    const gates: [string, Running][] = [];
    for (const [name, ratelimits] of [
      ["verified key", []],
      ["key + strict limit", [STRICT]],
    ] as const) {
      const policyId = await environment.createPolicy(`steady-${ratelimits.length}`, ratelimits);
      const sidecar = await started.add(startSidecar(environment, { policyId, upstream: app }));
      await untilKeysPass(sidecar.url, keys);
      gates.push([name, sidecar]);
    }
    return await forEachKeyCount(options, async (count) => {
      const requests = requestsOf(keys.slice(0, count));
      const figures: Figure[] = [];
      for (const [name, sidecar] of gates) {
        figures.push(await measure(name, { sidecar, bare }, { requests, options }));
      }
      return figures;
    });
  } finally {
    await started.stop();
  }
};

async function measure(
  name: string,
  { sidecar, bare }: { sidecar: Running; bare: Running | undefined },
  { requests, options }: { requests: readonly LoadRequest[]; options: SectionOptions },
): Promise<Figure> {
  const { rounds, durationMs, progress } = options;
  const load = { url: `${sidecar.url}/orders/1`, requests, connections: CONNECTIONS, durationMs };
  const ours: Array<Steady & { ratio: number; share: number }> = [];
  const theirs: Steady[] = [];
  await sendLoad(load);
  for (let round = 1; round <= rounds; round += 1) {
    progress(`steady: ${name}, round ${round} of ${rounds}`);
    const { requestsPerSecond: highest } = await sendLoad(load);
    const paced = (url: string) => sendPaced(url, { requests, rate: SHARE * highest, durationMs });
    const mine = await paced(sidecar.url);
    ours.push({ ...mine, ratio: mine.p99Ms / mine.medianMs, share: mine.requestsPerSecond / highest });
    if (bare !== undefined) theirs.push(await paced(bare.url));
  }
  const ratios = ours.map(({ ratio }) => ratio);
  const of = (key: keyof Steady, samples: readonly Steady[], digits = 2) =>
    median(samples.map((sample) => sample[key])).toFixed(digits);
  return {
    name: `p99 / median of a ${name} at 70 % of the highest rate`,
    unit: "ratio",
    value: median(ratios),
    max: 2,
    detail: [
      `median ${of("medianMs", ours)} ms, p99 ${of("p99Ms", ours)} ms, ${of("requestsPerSecond", ours, 0)} requests/s`,
      `${(100 * median(ours.map(({ share }) => share))).toFixed(0)} % of the highest`,
      `rounds ${Math.min(...ratios).toFixed(1)}–${Math.max(...ratios).toFixed(1)}`,
      ...(bare === undefined
        ? []
        : [`nginx, bare: median ${of("medianMs", theirs)} ms, p99 ${of("p99Ms", theirs)} ms`]),
    ].join(", "),
  };
}

async function sendPaced(
  url: string,
  { requests, rate, durationMs }: { requests: readonly LoadRequest[]; rate: number; durationMs: number },
): Promise<Steady> {
  const child = join(import.meta.dirname, "children", "paced.ts");
  const args = [child, `${url}/orders/1`, ...[rate, CONNECTIONS, durationMs].map(String)];
  const running = run(process.execPath, args, { timeout: durationMs + 30_000 });
  running.child.stdin?.end(requests.map(({ authorization }) => authorization).join("\n"));
  return JSON.parse((await running).stdout) as Steady;
}
