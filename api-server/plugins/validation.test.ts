import compileSerializer from "fast-json-stringify";
import { expect, test } from "vitest";
import type * as z from "zod";
import { PublicError } from "../../core/errors.ts";
import { v1Procedures } from "../v1/index.ts";
import { procedures } from "../v2/index.ts";
import { responseSchema } from "./json-schema.ts";
import { successBody } from "./serve-v2.ts";
import { bodyValidator } from "./validation.ts";

/* A server compiles a schema only when it is first used, so a schema that does not compile must fail here. */

const schemas: { readonly path: string; readonly body: z.ZodType; readonly responses: readonly z.ZodType[] }[] = [
  ...procedures.map((procedure) => ({
    path: procedure.path,
    body: procedure.body,
    responses: [successBody(procedure)],
  })),
  ...v1Procedures.map(({ path, input, response, otherResponses = {} }) => ({
    path: `v1/${path}`,
    body: input,
    responses: [response, ...Object.values(otherResponses)],
  })),
];

test.each(schemas)("schemas of $path compile", ({ path, body, responses }) => {
  expect(() => bodyValidator(body, path)(null, 0)).toThrow(PublicError);
  for (const response of responses)
    expect(compileSerializer(responseSchema(response, "draft-7"))).toBeTypeOf("function");
});
