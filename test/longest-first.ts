import { relative, resolve } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import seconds from "./durations.json" with { type: "json" };

const ROOT = resolve(import.meta.dirname, "..");
const recorded: Readonly<Record<string, number>> = seconds;

/**
 * Runs one project after another, because a worker with its modules and its browser is used again only if the next file is of its project.
 * The project whose files take longest on average comes first, and within a project its longest file. So the last files are short, and no
 * worker is idle while another runs a long one. record-durations.ts writes the durations; a file without a duration counts as short.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const durationOf = ({ moduleId }: TestSpecification): number => recorded[relative(ROOT, moduleId)] ?? 0;
    const averages = new Map<string, number>();
    for (const [name, ofProject] of Map.groupBy(files, ({ project }) => project.name)) {
      averages.set(name, ofProject.reduce((sum, file) => sum + durationOf(file), 0) / ofProject.length);
    }
    const averageOf = ({ project }: TestSpecification): number => averages.get(project.name) ?? 0;
    return files.toSorted(
      (one, other) =>
        averageOf(other) - averageOf(one) ||
        one.project.name.localeCompare(other.project.name) ||
        durationOf(other) - durationOf(one),
    );
  }
}
