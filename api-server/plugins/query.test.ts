import type { FastifyRequest } from "fastify";
import { expect, test } from "vitest";
import * as z from "zod";
import { compileQuery } from "./query.ts";

const Query = z.object({
  text: z.string().optional(),
  count: z.int().optional(),
  start: z.int().nullable().optional(),
  flag: z.boolean().optional(),
  tags: z.array(z.string()).optional(),
  numbers: z.array(z.int()).optional(),
  order: z.enum(["asc", "desc"]).optional(),
});
const readQuery = (query: unknown, params: unknown = {}) =>
  compileQuery(Query, "/v1/test")({ query, params } as FastifyRequest);

test.each([
  { query: {}, content: {} },
  { query: { text: "1", unknown: "x" }, content: { text: "1" } },
  { query: { text: "" }, content: { text: "" } },
  { query: { text: ["a", "b"] }, content: { text: ["a", "b"] } },
  { query: { count: ["1"] }, content: { count: ["1"] } },
  { query: { flag: ["true", "true"] }, content: { flag: ["true", "true"] } },
  { query: { count: "null" }, content: { count: "null" } },
  { query: { count: "-10" }, content: { count: -10 } },
  { query: { count: "1e3" }, content: { count: 1000 } },
  { query: { count: "0x10" }, content: { count: "0x10" } },
  { query: { count: "1e999" }, content: { count: "1e999" } },
  { query: { count: "" }, content: { count: "" } },
  { query: { count: " 1" }, content: { count: " 1" } },
  { query: { start: "" }, content: { start: null } },
  { query: { start: "null" }, content: { start: null } },
  { query: { start: "12" }, content: { start: 12 } },
  { query: { flag: "true" }, content: { flag: true } },
  { query: { flag: "1" }, content: { flag: true } },
  { query: { flag: "false" }, content: { flag: false } },
  { query: { flag: "0" }, content: { flag: false } },
  { query: { flag: "" }, content: { flag: false } },
  { query: { flag: "yes" }, content: { flag: "yes" } },
  { query: { tags: "a,b" }, content: { tags: ["a,b"] } },
  { query: { tags: ["a", "b"] }, content: { tags: ["a", "b"] } },
  { query: { numbers: ["1", "x"] }, content: { numbers: [1, "x"] } },
  { query: { order: "asc" }, content: { order: "asc" } },
])("query string $query is parsed as $content", ({ query, content }) => expect(readQuery(query)).toEqual(content));

test("path parameters are members that a query string cannot override", () => {
  expect(readQuery({ text: "query" }, { text: "path" })).toEqual({ text: "path" });
});

test("procedure whose input cannot be expressed in a query string fails at startup", () => {
  expect(() => compileQuery(z.object({ meta: z.object({}) }), "/v1/x")).toThrow(
    "a query cannot hold what /v1/x?meta is",
  );
  expect(() => compileQuery(z.object({ a: z.union([z.int(), z.string()]) }), "/v1/x")).toThrow("/v1/x?a");
});
