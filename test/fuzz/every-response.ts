import { expect, test } from "vitest";
import { fuzz } from "./fuzz.ts";

// Schemathesis is installed in the first run on a machine, which takes longer than the run itself.
export const FUZZ_TIMEOUT_MS = 600_000;

// Requests that are derived from earlier responses differ in each run, so they are left to `npm run fuzz`.
export const PHASES = ["--phases", "examples,coverage,fuzzing"];

/** The generations are tested in two files, so that they run side by side. */
export function testEveryResponse(generation: "v1" | "v2"): void {
  test(`every response of every procedure of ${generation} matches its OpenAPI document`, {
    timeout: FUZZ_TIMEOUT_MS,
  }, async () => {
    const { passed, output, errors } = await fuzz({ examples: 5, seed: 1, generations: [generation], args: PHASES });
    expect(errors).toEqual([]);
    expect(passed, output).toBe(true);
    // Proves that requests were generated.
    expect(output).toMatch(/[1-9]\d{3,} generated/);
  });
}
