import { expect, test } from "vitest";
import { type FalsifiedDocument, fuzz } from "./fuzz.ts";

// Schemathesis is installed in the first run on a machine, which takes longer than the run itself.
const TIMEOUT_MS = 300_000;

// Requests that are derived from earlier responses differ in each run, so they are left to `npm run fuzz`.
const PHASES = ["--phases", "examples,coverage,fuzzing"];

test.each(["v2", "v1"] as const)(
  "every response of every procedure of %s matches its OpenAPI document",
  {
    timeout: TIMEOUT_MS,
  },
  async (generation) => {
    const { passed, output, errors } = await fuzz({ examples: 5, seed: 1, generations: [generation], args: PHASES });
    expect(errors).toEqual([]);
    expect(passed, output).toBe(true);
    // Proves that requests were generated.
    expect(output).toMatch(/[1-9]\d{3,} generated/);
  },
);

test("a server that accepts what the document refuses would be detected", { timeout: TIMEOUT_MS }, async () => {
  const falsify = ({ paths }: FalsifiedDocument) => {
    const body = paths["/v2/apis.createApi"]?.post.requestBody.content["application/json"].schema;
    if (body !== undefined) body.properties.name = { type: "string", minLength: 3, maxLength: 4, pattern: "^a" };
  };
  const { passed, output } = await fuzz({ examples: 60, seed: 1, only: "apis.createApi", args: PHASES, falsify });
  expect(passed).toBe(false);
  expect(output).toContain("Schema-violating request accepted");
});
