import { expect, test } from "vitest";
import { type FalsifiedDocument, fuzz } from "./fuzz.ts";

// Schemathesis is installed on the first run of a machine, which takes longer than the run itself.
const TIMEOUT_MS = 300_000;

// What it makes up from one answer for the next request is left to `npm run fuzz`: it is another one each time.
const PHASES = ["--phases", "examples,coverage,fuzzing"];

test("no procedure answers otherwise than the OpenAPI document says", { timeout: TIMEOUT_MS }, async () => {
  const { passed, output, errors } = await fuzz({ examples: 5, seed: 1, args: PHASES });
  expect(errors).toEqual([]);
  expect(passed, output).toBe(true);
  // It has not merely found nothing to do.
  expect(output).toMatch(/[1-9]\d{3,} generated/);
});

test("a server that takes what the document refuses would be found out", { timeout: TIMEOUT_MS }, async () => {
  const falsify = ({ paths }: FalsifiedDocument) => {
    const body = paths["/v2/apis.createApi"]?.post.requestBody.content["application/json"].schema;
    if (body !== undefined) body.properties.name = { type: "string", minLength: 3, maxLength: 4, pattern: "^a" };
  };
  const { passed, output } = await fuzz({ examples: 60, seed: 1, only: "apis.createApi", args: PHASES, falsify });
  expect(passed).toBe(false);
  expect(output).toContain("Schema-violating request accepted");
});
