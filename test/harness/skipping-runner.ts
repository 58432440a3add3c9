import { type RunnerTask, type RunnerTestSuite, TestRunner } from "vitest";

/**
 * Test runner for `ALLOW_SKIP=1`: a test that fails because a service of the harness is missing counts as skipped, with a line on stderr.
 * By default the run fails, because a green run without tests would mislead.
 */
export default class SkippingRunner extends TestRunner {
  override async onAfterRunSuite(suite: RunnerTestSuite): Promise<void> {
    skipWhenPartIsMissing(suite);
    await super.onAfterRunSuite(suite);
  }

  override onAfterRunTask(test: Parameters<TestRunner["onAfterRunTask"]>[0]): void {
    skipWhenPartIsMissing(test);
    super.onAfterRunTask(test);
  }
}

function skipWhenPartIsMissing(task: RunnerTask): void {
  const { result } = task;
  if (result?.state !== "fail") return;
  // Hooks after the failed one fail too; only the cause counts.
  const missing = result.errors?.find((error) => error.name === "MissingPart");
  if (missing === undefined) return;
  process.stderr.write(`\nSKIPPED (ALLOW_SKIP=1): ${task.file.name} > ${task.name}: ${missing.message}\n`);
  result.state = "skip";
  delete result.errors;
}
