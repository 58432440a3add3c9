import { expect, test } from "vitest";
import { FUZZ_TIMEOUT_MS, PHASES } from "./every-response.ts";
import { type FalsifiedDocument, fuzz } from "./fuzz.ts";

test("fuzzer detects a server that accepts what the OpenAPI document rejects", {
  timeout: FUZZ_TIMEOUT_MS,
}, async () => {
  const falsify = ({ paths }: FalsifiedDocument) => {
    const body = paths["/v2/apis.createApi"]?.post.requestBody.content["application/json"].schema;
    if (body !== undefined) body.properties.name = { type: "string", minLength: 3, maxLength: 4, pattern: "^a" };
  };
  const { passed, output } = await fuzz({ examples: 60, seed: 1, only: "apis.createApi", args: PHASES, falsify });
  expect(passed).toBe(false);
  expect(output).toContain("Schema-violating request accepted");
});
