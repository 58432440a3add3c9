import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

const ROOT = resolve(import.meta.dirname, "..");
const TABLE = join(ROOT, "test/durations.json");
const RECORDED_SECONDS_MIN = 5;

type Seconds = Readonly<Record<string, number>>;

/** Replaces the durations of the files that ran, without those below 5 s, and keeps the others as long as the file exists. */
export function mergeDurations(recorded: Seconds, ran: Seconds, exists: (path: string) => boolean): Seconds {
  const merged = Object.entries({ ...recorded, ...ran }).filter(
    ([path, seconds]) => seconds >= RECORDED_SECONDS_MIN && exists(path),
  );
  return Object.fromEntries(merged.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/**
 * Records in test/durations.json how long the files of a run took: `make test-all ARGS=--record`, or
 * `vitest run --reporter=default --reporter=./test/record-durations.ts PATH…`.
 */
export default class RecordDurations implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const ran = Object.fromEntries(
      modules.map((module) => [module.relativeModuleId, Math.round(module.diagnostic().duration / 1000)]),
    );
    const recorded = JSON.parse(readFileSync(TABLE, "utf8")) as Seconds;
    const merged = mergeDurations(recorded, ran, (path) => existsSync(join(ROOT, path)));
    writeFileSync(TABLE, `${JSON.stringify(merged, null, 2)}\n`);
  }
}
