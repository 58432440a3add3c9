import { relative, resolve } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import seconds from "./durations.json" with { type: "json" };

const ROOT = resolve(import.meta.dirname, "..");
const recorded: Readonly<Record<string, number>> = seconds;

/**
 * Runs one project after another, because a worker with its modules and its browser is used again only if the next file is of its project.
 * The project with the longest file comes first, and in each the longest file, so that no worker is idle while another runs a file of minutes.
 * record-durations.ts wrote the durations; a file without one is short.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const durationOf = ({ moduleId }: TestSpecification): number => recorded[relative(ROOT, moduleId)] ?? 0;
    const longest = new Map<string, number>();
    for (const file of files) {
      const { name } = file.project;
      longest.set(name, Math.max(longest.get(name) ?? 0, durationOf(file)));
    }
    const longestIn = ({ project }: TestSpecification): number => longest.get(project.name) ?? 0;
    return files.toSorted(
      (one, other) =>
        longestIn(other) - longestIn(one) ||
        one.project.name.localeCompare(other.project.name) ||
        durationOf(other) - durationOf(one),
    );
  }
}
