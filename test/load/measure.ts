import { readdirSync, readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import { type Load, sendLoad, type Work } from "./generator.ts";

/*
 * CPU per request of a measured process, as a ratio to another one in the same run. Shared machines change their speed from
 * second to second, so the two are measured alternately, and the median of the ratios is used.
 */

export interface Contestant {
  readonly name: string;
  /** The processes whose CPU time is summed. */
  readonly pids: readonly number[];
  /** Sent at the same time. */
  readonly loads: ReadonlyArray<Load | Work>;
}

export interface Sample {
  readonly cpuMicrosPerRequest: number;
  readonly requestsPerSecond: number;
  readonly p99Ms: number;
}

export interface Comparison {
  readonly name: string;
  readonly baseline: string;
  readonly samples: readonly Sample[];
  readonly baselineSamples: readonly Sample[];
  /** Median of the pairs' ratios of CPU per request. */
  readonly ratio: number;
  readonly ratios: readonly number[];
}

/** Kernel clock ticks a second; 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/**
 * User and system time of a process, all its threads, in microseconds. Linux only. A kernel with statistics of its scheduler tells it
 * in nanoseconds; in others it comes in ticks, which are too coarse for a process that uses a twentieth of a core.
 */
export function cpuMicros(pid: number): number {
  return scheduledMicros(pid) ?? tickedMicros(pid);
}

function scheduledMicros(pid: number): number | undefined {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return sum(
      threads.map(
        (thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1000,
      ),
    );
  } catch {
    return undefined;
  }
}

function tickedMicros(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The command may contain spaces and parentheses, so the fields are counted from its closing one.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / TICKS_PER_SECOND;
}

/** Resident memory of a process in MB (10^6 bytes). Linux only. */
export const residentMb = (pid: number): number => statusMb(pid, "VmRSS");

/** The most that it ever was. */
export const peakResidentMb = (pid: number): number => statusMb(pid, "VmHWM");

function statusMb(pid: number, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1];
  return (Number(kilobytes) * 1024) / 1_000_000;
}

/** A number of `INFO`, such as `used_memory` of the section `memory`. */
export async function redisNumber(redis: Redis, section: string, field: string): Promise<number> {
  return Number(new RegExp(`^${field}:(\\d+)`, "m").exec(await redis.info(section))?.[1]);
}

const begin = (load: Load | Work, durationMs?: number) =>
  typeof load === "function" ? load() : sendLoad({ ...load, durationMs: durationMs ?? load.durationMs });

async function sample({ pids, loads }: Contestant): Promise<Sample> {
  const used = () => sum(pids.map(cpuMicros));
  const before = used();
  const results = await Promise.all(loads.map((load) => begin(load)));
  return {
    cpuMicrosPerRequest: (used() - before) / sum(results.map(({ requests }) => requests)),
    requestsPerSecond: sum(results.map(({ requestsPerSecond }) => requestsPerSecond)),
    p99Ms: Math.max(...results.map(({ p99Ms }) => p99Ms)),
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Measures several contestants against one baseline each, interleaved: every round measures each once. */
export async function compare(options: {
  contestants: ReadonlyArray<{ contestant: Contestant; baseline: Contestant }>;
  rounds: number;
  onRound: (round: number) => void;
}): Promise<Comparison[]> {
  const everybody = [...new Set(options.contestants.flatMap(({ contestant, baseline }) => [baseline, contestant]))];
  for (const each of everybody) await Promise.all(each.loads.map((load) => begin(load, 1000)));
  const samples = new Map<Contestant, Sample[]>(everybody.map((each) => [each, []]));
  for (let round = 1; round <= options.rounds; round += 1) {
    options.onRound(round);
    // Every second round is in reverse order, so that no contestant always follows the same one.
    for (const each of round % 2 === 0 ? everybody.toReversed() : everybody) {
      samples.get(each)?.push(await sample(each));
    }
  }
  return options.contestants.map(({ contestant, baseline }) => {
    const ours = samples.get(contestant) ?? [];
    const theirs = samples.get(baseline) ?? [];
    const ratios = ours.map(
      (mine, index) => mine.cpuMicrosPerRequest / (theirs[index]?.cpuMicrosPerRequest ?? Number.NaN),
    );
    return {
      name: contestant.name,
      baseline: baseline.name,
      samples: ours,
      baselineSamples: theirs,
      ratio: median(ratios),
      ratios,
    };
  });
}

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** The smallest value that at least `percent` % of the values do not exceed; NaN of none. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}
