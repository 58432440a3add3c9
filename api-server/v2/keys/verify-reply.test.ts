import * as fc from "fast-check";
import { fastify } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Code } from "../../../core/verification/codes.ts";
import type { KeyView } from "../../../core/verification/key-view.ts";
import { aKeyView, anIdentityRecord } from "../../../test/builders/key-view.ts";
import { responseSchema } from "../../plugins/json-schema.ts";
import { NOT_FOUND, toDataJson } from "./verify-reply.ts";
import { Data } from "./verify-schemas.ts";

/** What a serializer made of the schema writes of the same data: the bytes that every other procedure would send. */
const app = fastify();
let bySchema: (data: Data) => string;
beforeAll(async () => {
  app.get("/", { schema: { response: { 200: responseSchema(Data, "draft-7") } } }, (_request, reply) => {
    // An overload for statuses as text alone is what its types know; what it looks up is the schema of the route.
    const serialize = reply.getSerializationFunction("200");
    if (serialize === undefined) throw new Error("the schema has a serializer");
    bySchema = (data) => serialize(data as Record<string, unknown>);
    reply.send({ valid: false, code: "NOT_FOUND" } satisfies Data);
  });
  expect((await app.inject("/")).body).toBe(NOT_FOUND.json);
});
afterAll(() => app.close());

const text = fc.string({ unit: "grapheme", maxLength: 20 });
const count = fc.nat(Number.MAX_SAFE_INTEGER);
const meta = fc.dictionary(text, fc.jsonValue(), { maxKeys: 4 });
const limit = fc.record({
  id: text,
  name: text,
  limit: count,
  durationMs: count,
  autoApply: fc.boolean(),
});
const key = fc.record(
  {
    name: text,
    enabled: fc.boolean(),
    expiresMs: count,
    meta,
    permissions: fc.array(text, { maxLength: 3 }),
    ratelimits: fc.array(limit, { maxLength: 2 }),
  },
  { requiredKeys: ["enabled", "permissions", "ratelimits"] },
);
const identity = fc
  .record(
    { externalId: text, meta, ratelimits: fc.array(limit, { maxLength: 2 }) },
    { requiredKeys: ["externalId", "ratelimits"] },
  )
  .map(anIdentityRecord);
const view: fc.Arbitrary<KeyView> = fc
  .record({ key, identity: fc.option(identity, { nil: undefined }), roles: fc.array(text, { maxLength: 2 }) })
  .map(({ key, identity, roles }) =>
    aKeyView({ key, identity, roles: roles.map((name, i) => ({ id: `role_${i}`, name, permissions: [] })) }),
  );
const checked = fc.record({
  limit: limit.map((one) => ({ ...one, cost: 1, identifier: "key_7" })),
  outcome: fc.record({ passed: fc.boolean(), remaining: count, resetMs: count }),
});

test("verifyKey response text equals the output of its schema serializer", () => {
  fc.assert(
    fc.property(
      view,
      fc.record({ code: fc.constantFrom(...Code.options), credits: fc.option(count, { nil: undefined }) }),
      fc.option(fc.array(checked, { maxLength: 3 }), { nil: undefined }),
      (of, { code, credits }, charges) => {
        const limits = charges?.map((charge) => charge.limit);
        const outcomes = charges?.map((charge) => charge.outcome);
        // Twice: once made, once remembered.
        for (let time = 0; time < 2; time++) {
          const { json } = toDataJson(of, { code, credits, limits, outcomes });
          // Held against the schema, but not taken from it: zod leaves out a member of meta that is called __proto__.
          const data = JSON.parse(json) as Data;
          expect(Data.safeParse(data).success).toBe(true);
          expect(data).toMatchObject({ valid: code === "VALID", code, keyId: "key_7" });
          expect(data.ratelimits?.length ?? 0).toBe(charges?.length ?? 0);
          expect(json).toBe(bySchema(data));
        }
      },
    ),
  );
});
