import { relative, resolve } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const ROOT = resolve(import.meta.dirname, "..");

/** Files that take the most time of their group, about 40 s and more, the slowest first. */
const SLOW: readonly string[] = [
  "test/e2e/operator-rights.test.ts",
  "test/e2e/operator-tenants.test.ts",
  "test/e2e/operator-references.test.ts",
  "test/faults/overshoot.test.ts",
  "test/e2e/operator-killed-at-each-step.test.ts",
  "test/dashboard/sweep.test.ts",
  "test/dashboard/xss-in-windows.test.ts",
  "test/docs/recipes.test.ts",
  "test/dashboard/troubles.test.ts",
  "test/e2e/operator-at-rest.test.ts",
  "test/analytics/corpus.test.ts",
  "test/e2e/webhook.test.ts",
  "test/faults/redis-kinds.test.ts",
  "test/dashboard/windows-of-keys.test.ts",
  "test/analytics/attacks.test.ts",
  "test/e2e/operator-kubernetes.test.ts",
  "test/fuzz/v2.test.ts",
  "test/dashboard/xss.test.ts",
  "test/faults/clickhouse-troubles.test.ts",
  "test/e2e/operator-killed.test.ts",
  "test/faults/gate-credentials.test.ts",
  "test/faults/away-at-start.test.ts",
  "test/e2e/operator.test.ts",
  "test/fuzz/v1.test.ts",
  "test/chart/chart.test.ts",
];

/**
 * Begins with the slow files. On a clean checkout vitest knows no durations and begins with the files that have the most text, so a short
 * file that takes minutes came last, and one of two workers had nothing to do meanwhile.
 */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = SLOW.indexOf(relative(ROOT, moduleId));
      return at === -1 ? SLOW.length : at;
    };
    // Stable: the rest stays in the usual order.
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}
