import type { Environment } from "./environment.ts";
import type { Load, LoadRequest } from "./generator.ts";
import { type Comparison, type Contestant, compare, median, type Sample } from "./measure.ts";
import type { Running } from "./stack.ts";

/* The type of a section of `npm run bench`, and what sections share. */

export interface Figure {
  readonly name: string;
  readonly unit: "ratio" | "%" | "µs" | "ms" | "s" | "MB" | "round trips" | "responses";
  readonly value: number;
  /** `undefined` for a figure that is only shown. */
  readonly max: number | undefined;
  /** Details: throughput, percentiles, spread. */
  readonly detail: string;
}

export interface SectionOptions {
  readonly rounds: number;
  readonly durationMs: number;
  /** Numbers of keys that the requests of some sections use in turn; the bounds are for the first. */
  readonly keyCounts: readonly number[];
  /** Numbers of stored keys with which `rebuild` is repeated; the first is that of `cache`, too. */
  readonly storedKeys: readonly number[];
  /** Verifications over which questions are asked; also over a tenth of them. */
  readonly usageEvents: number;
  /** The most verifications with which a ClickHouse is filled, too. */
  readonly clickhouseEvents: number;
  /** Events that wait when ingestion begins. */
  readonly backlogEvents: number;
  /** Whether sections that have curves draw them into docs/pictures/. */
  readonly pictures: boolean;
  readonly progress: (line: string) => void;
}

export type Section = (environment: Environment, options: SectionOptions) => Promise<Figure[]>;

export const CONNECTIONS = 32;

/** What a section has started, which ends with it. */
export class Started {
  readonly #all: Array<{ stop(): Promise<unknown> }> = [];

  async add<T extends { stop(): Promise<unknown> }>(starting: Promise<T>): Promise<T> {
    const one = await starting;
    this.#all.push(one);
    return one;
  }

  async stop(): Promise<void> {
    for (const each of this.#all.splice(0).reverse()) await each.stop();
  }
}

/**
 * Compares while the api-server stands still. In production api-servers run on other machines. Here their work, storing the events of this
 * load, would take cores and caches from the measured processes, and only from those that make events.
 */
export async function compareGates(
  { apiServer }: Pick<Environment, "apiServer">,
  { rounds, progress }: SectionOptions,
  name: string,
  contestants: Parameters<typeof compare>[0]["contestants"],
): Promise<Comparison[]> {
  process.kill(apiServer.pid, "SIGSTOP");
  const onRound = (round: number) => progress(`${name}: round ${round} of ${rounds}`);
  return compare({ contestants, rounds, onRound }).finally(() => process.kill(apiServer.pid, "SIGCONT"));
}

/** Names a process and its load; all of one section have the same connections and time. */
export function contestant(
  options: SectionOptions,
  load: (running: Running) => Omit<Load, "connections" | "durationMs">,
) {
  return (name: string, running: Running): Contestant => ({
    name,
    pids: [running.pid],
    loads: [{ connections: CONNECTIONS, durationMs: options.durationMs, ...load(running) }],
  });
}

/** Measures with one number of keys after the other, so that the keys of one do not evict those of another from caches. */
export async function forEachKeyCount(
  { keyCounts }: SectionOptions,
  measure: (count: number) => Promise<readonly Figure[]>,
): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [index, count] of keyCounts.entries()) {
    for (const { name, max, ...rest } of await measure(count)) {
      const keys = `${count.toLocaleString("en")} ${count === 1 ? "key" : "keys"}`;
      figures.push({ name: `${name}, ${keys}`, max: index === 0 ? max : undefined, ...rest });
    }
  }
  return figures;
}

/** Returns one request per key. */
export const requestsOf = (keys: readonly { readonly key: string }[]): LoadRequest[] =>
  keys.map(({ key }) => ({ authorization: `Bearer ${key}` }));

export function toFigures(results: readonly Comparison[], bounds: readonly (number | undefined)[]): Figure[] {
  return results.map(({ name, baseline, samples, baselineSamples, ratio, ratios }, index) => ({
    name: `${name} / ${baseline}`,
    unit: "ratio" as const,
    value: ratio,
    max: bounds[index],
    detail: [
      `${medianCpu(samples)} µs CPU a request against ${medianCpu(baselineSamples)}`,
      `${median(samples.map((sample) => sample.requestsPerSecond)).toFixed(0)} requests/s`,
      ...(Number.isNaN(samples[0]?.p99Ms) ? [] : [`p99 ${median(samples.map(({ p99Ms }) => p99Ms)).toFixed(1)} ms`]),
      `pairs ${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`,
    ].join(", "),
  }));
}

const medianCpu = (samples: readonly Sample[]): string =>
  median(samples.map(({ cpuMicrosPerRequest }) => cpuMicrosPerRequest)).toFixed(1);

/** Returns how long it took, ms. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
