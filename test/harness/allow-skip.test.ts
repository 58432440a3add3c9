import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { BROKER_URL } from "./broker.ts";
import { startProcess } from "./process.ts";

const root = join(import.meta.dirname, "../..");
const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");

/** Starts a separate test run without a Redis. */
async function runWithoutRedis(allowSkip: string | undefined) {
  const run = await startProcess(
    process.execPath,
    [vitest, "run", "test/harness/redis.test.ts", "-t", "shared test Redis"],
    {
      cwd: root,
      env: { ALLOW_SKIP: allowSkip, TEST_REDIS_URL: "redis://127.0.0.1:1", [BROKER_URL]: undefined, NO_COLOR: "1" },
    },
  );
  const { code } = await run.exited;
  return { code, output: run.stdout() + run.stderr() };
}

test("missing test dependency fails the run with one installation hint", async () => {
  const { code, output } = await runWithoutRedis(undefined);
  expect(code).toBe(1);
  expect(output).toMatch(/^MissingPart: Redis is missing \(tried .*\): install redis-server .*$/m);
});

test("ALLOW_SKIP=1 skips tests of a missing dependency with a message", async () => {
  const { code, output } = await runWithoutRedis("1");
  expect(code).toBe(0);
  expect(output).toMatch(/^SKIPPED \(ALLOW_SKIP=1\): .*redis\.test\.ts: Redis is missing/m);
  expect(output).toMatch(/Tests .*4 skipped/);
});
