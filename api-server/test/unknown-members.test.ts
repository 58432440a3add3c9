import { afterAll, beforeAll, expect, test } from "vitest";
import { buildOpenApi } from "../plugins/openapi.ts";
import { procedures } from "../v2/index.ts";
import { buildTestApp, type TestApp } from "./app.ts";

/*
 * An unknown member in any object of a request is rejected with its location (api-v2.md section 2), except in the objects listed here,
 * where it is ignored. The cases are generated from the schemas, so that new objects are included.
 */

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

const UNKNOWN = "memberOfALaterVersion";

/** Procedures that ignore unknown members at the top level; nested objects have their own rules. */
const TOLERANT_PROCEDURES: ReadonlySet<string> = new Set([
  "identities.createIdentity",
  "keys.rerollKey",
  "analytics.getVerifications",
  "analytics.getRatelimits",
]);

function isIgnored(procedure: string, place: string): boolean {
  if (place === "") return TOLERANT_PROCEDURES.has(procedure);
  if (/(^|\.)meta$/.test(place)) return true;
  return place.endsWith("ratelimits[]");
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

const document = buildOpenApi(procedures) as unknown as {
  readonly paths: Record<string, { post?: { requestBody: { content: Record<string, { schema: Schema }> } } }>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
};

const resolve = (schema: Schema): Schema =>
  schema.$ref === undefined ? schema : resolve(document.components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {});

const isPlain = ({ type, properties, anyOf, oneOf }: Schema): boolean =>
  properties === undefined && anyOf === undefined && oneOf === undefined && type !== "array" && type !== "object";

/** Returns values of the schema with all members from its examples, one for each alternative of each union. */
function valuesOf(given: Schema): unknown[] {
  const schema = resolve(given);
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives !== undefined) return alternatives.filter(({ type }) => type !== "null").flatMap(valuesOf);
  if (schema.const !== undefined) return [schema.const];
  if (schema.properties !== undefined) return objectsOf(schema.properties);
  // Each alternative gets a separate array, so that the rejection of one does not hide another.
  if (schema.items !== undefined && (schema.examples === undefined || !isPlain(resolve(schema.items)))) {
    return valuesOf(schema.items).map((item) => [item]);
  }
  return [schema.enum?.[0] ?? schema.examples?.[0] ?? schema.default ?? schema.minimum ?? true];
}

function objectsOf(properties: Readonly<Record<string, Schema>>): unknown[] {
  const members = Object.entries(properties).map(([name, schema]) => ({ name, values: valuesOf(schema) }));
  const first = Object.fromEntries(members.map(({ name, values }) => [name, values[0]]));
  const others = members.flatMap(({ name, values }) => values.slice(1).map((value) => ({ ...first, [name]: value })));
  return [first, ...others];
}

interface Place {
  /** Schema path such as `policy.rules[].path`; empty for the body. */
  readonly place: string;
  /** Location as in a response, such as `body.policy.rules[0].path`. */
  readonly location: string;
  readonly steps: readonly (string | number)[];
}

/** Returns every object in a value, including the value itself. */
function placesOf(value: unknown, at: Place = { place: "", location: "body", steps: [] }): Place[] {
  const { place, location, steps } = at;
  if (Array.isArray(value)) {
    return value.flatMap((item, i) =>
      placesOf(item, { place: `${place}[]`, location: `${location}[${i}]`, steps: [...steps, i] }),
    );
  }
  if (typeof value !== "object" || value === null) return [];
  const members = Object.entries(value).flatMap(([name, member]) =>
    placesOf(member, {
      place: place === "" ? name : `${place}.${name}`,
      location: `${location}.${name}`,
      steps: [...steps, name],
    }),
  );
  return [at, ...members];
}

/** Returns a copy of the body with an unknown member in the object at that path. */
function withUnknown(body: unknown, { steps }: Place): unknown {
  const copy = structuredClone(body);
  let holder = copy as Record<string | number, unknown>;
  for (const step of steps) holder = holder[step] as typeof holder;
  holder[UNKNOWN] = { also: "unknown" };
  return copy;
}

const cases = Object.entries(document.paths).flatMap(([url, { post }]) => {
  const schema = post?.requestBody.content["application/json"]?.schema;
  if (schema === undefined) return [];
  const procedure = url.replace("/v2/", "");
  const bodies = valuesOf(schema);
  const tried = bodies.flatMap((body) => placesOf(body).map((place) => ({ ...place, body: withUnknown(body, place) })));
  return [...Map.groupBy(tried, ({ place }) => place)].map(([place, all]) => ({
    name: `${procedure} ${place}`,
    procedure,
    place,
    all,
  }));
});

test("tests of unknown members cover every procedure and every nested object", () => {
  const names = cases.map(({ name }) => name);
  expect(new Set(cases.map(({ procedure }) => procedure))).toEqual(new Set(procedures.map(({ path }) => path)));
  expect(names).toContain("keys.verifyKey ratelimits[]");
  expect(names).toContain("keys.migrateKeys keys[].credits.refill");
});

test.each(cases)("unknown member in $name is rejected or ignored as documented", async ({ procedure, place, all }) => {
  for (const { location, body } of all) {
    const { status, body: response } = await t.call(procedure, body);
    const unknown = `${location}.${UNKNOWN}`;
    const named = (response.error?.errors ?? []).map((entry: { location: string }) => entry.location);
    if (isIgnored(procedure, place)) {
      // The objects named in the examples need not exist, because existence is checked after the schema.
      expect(response.error?.detail ?? "").not.toContain("does not match its schema");
    } else {
      expect(status, JSON.stringify(response)).toBe(400);
      expect(named).toContain(unknown);
    }
  }
});
