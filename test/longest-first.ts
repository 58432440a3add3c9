import { relative, resolve } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import seconds from "./durations.json" with { type: "json" };

const ROOT = resolve(import.meta.dirname, "..");

/**
 * Starts the longest files first, so that no worker is idle while another runs a file of minutes. record-durations.ts wrote the
 * durations; a file without one is short.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const recorded: Readonly<Record<string, number>> = seconds;
    const duration = ({ moduleId }: TestSpecification): number => recorded[relative(ROOT, moduleId)] ?? 0;
    return files.toSorted((one, other) => duration(other) - duration(one));
  }
}
