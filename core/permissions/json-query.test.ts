import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileGrants } from "./grants.ts";
import { JsonQueryError, readJsonQuery } from "./json-query.ts";
import { evaluateQuery, parseQuery } from "./query.ts";

const GRANTS = compileGrants(["documents.*", "users.view"]);

describe("a v1 permission query", () => {
  test.each([undefined, null, ""])("v1 permission query %j requires no permission", (value) =>
    expect(readJsonQuery(value)).toBeUndefined(),
  );

  test.each([
    { query: "users.view", met: true },
    { query: "documents.read", met: true },
    { query: "documents", met: false },
    { query: { and: ["users.view", "documents.read"] }, met: true },
    { query: { and: ["users.view", "users.edit"] }, met: false },
    { query: { or: ["users.edit", { and: ["documents.a", { or: ["x", "users.view"] }] }] }, met: true },
    { query: { or: ["a", "b"] }, met: false },
    { query: { and: ["users.edit"], or: ["users.view"] }, met: false },
    { query: { or: ["users.view"], other: [1, null] }, met: true },
    // A v1 string is a single permission, never a v2 query.
    { query: "users.view OR documents.read", met: false },
  ])("v1 permission query $query evaluates to $met", ({ query, met }) => {
    const tree = readJsonQuery(query);
    expect(tree && evaluateQuery(tree, GRANTS)).toBe(met);
  });

  test.each([
    { query: {}, place: "" },
    { query: [], place: "" },
    { query: 7, place: "" },
    { query: true, place: "" },
    { query: ["users.view"], place: "" },
    { query: { and: [] }, place: "and" },
    { query: { or: "users.view" }, place: "or" },
    { query: { and: null, or: ["a"] }, place: "and" },
    { query: { or: ["a", null] }, place: "or[1]" },
    { query: { or: ["a", { and: ["b", { or: [{}] }] }] }, place: "or[1].and[1].or[0]" },
    { query: Object.create({ and: ["a"] }), place: "" },
  ])("v1 permission query $query is invalid with the error at '$place'", ({ query, place }) => {
    const read = () => readJsonQuery(query);
    expect(read).toThrow(JsonQueryError);
    expect(read).toThrow(expect.objectContaining({ place }));
  });

  test("v1 permission query has the same result as the v2 text with the same operators", () => {
    const slug = fc.constantFrom("documents.read", "users.view", "users.edit", "x");
    const { query } = fc.letrec((tie) => ({
      query: fc.oneof(
        { maxDepth: 5 },
        slug,
        fc.record({ and: fc.array(tie("query"), { minLength: 1, maxLength: 3 }) }),
        fc.record({ or: fc.array(tie("query"), { minLength: 1, maxLength: 3 }) }),
      ),
    }));
    const asText = (one: unknown): string => {
      if (typeof one === "string") return one;
      const [[op, operands]] = Object.entries(one as Record<string, unknown[]>) as [[string, unknown[]]];
      return `(${operands.map(asText).join(` ${op.toUpperCase()} `)})`;
    };
    fc.assert(
      fc.property(query, (one) => {
        const tree = readJsonQuery(one);
        expect(tree && evaluateQuery(tree, GRANTS)).toBe(evaluateQuery(parseQuery(asText(one)), GRANTS));
      }),
    );
  });
});
