import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MANAGED_KINDS, type ManagedKind } from "../db/managed-objects.ts";
import { MANAGED } from "../domain/managed/resources.ts";
import { getObject } from "../v2/managed/getObject.ts";
import { buildTestApp, type TestApp } from "./app.ts";

/*
 * The table of managed kinds is complete and used: every kind with a manager column has an entry, and no code that changes such an object
 * makes its own decision about permission.
 */

const resources = Object.values(MANAGED);
const tableOf = ({ index }: { readonly index: string }): string => index.replace(/_manager$/, "");

describe("the database", () => {
  let api: TestApp;
  beforeAll(async () => {
    api = await buildTestApp();
  });
  afterAll(() => api.close());

  test("tables of managed kinds have a `manager` column, and no other tables have one", async () => {
    const text = `select c.table_name as name from information_schema.columns c
                   where c.table_schema = 'public' and c.column_name = 'manager'`;
    const { rows } = await api.deps.db.query<{ name: string }>(text);
    expect(rows.map(({ name }) => name).sort()).toEqual(resources.map(tableOf).sort());
  });

  test.each(resources)("unique index $index allows one $noun per manager", async ({ index, kind }) => {
    const text = "select i.indexdef as definition from pg_indexes i where i.indexname = $1";
    const { rows } = await api.deps.db.query<{ definition: string }>(text, [index]);
    const ofEachName = kind === "key" ? /\(workspace_id, manager, COALESCE\(name/ : /\(workspace_id, manager\)/;
    expect(rows[0]?.definition).toMatch(/^CREATE UNIQUE INDEX/);
    expect(rows[0]?.definition).toMatch(ofEachName);
  });
});

test("table of managed kinds has one entry per kind", () => {
  expect(Object.keys(MANAGED).sort()).toEqual([...MANAGED_KINDS].sort());
  for (const [kind, resource] of Object.entries(MANAGED)) expect(resource.kind).toBe(kind);
  for (const field of ["noun", "index"] as const) {
    expect(new Set(resources.map((resource) => resource[field])).size).toBe(resources.length);
  }
});

test("managed.getObject declares the 404 of every kind", () => {
  const notFound = (kinds: readonly ManagedKind[]) => kinds.map((kind) => MANAGED[kind].notFound("x").kind).sort();
  expect([...getObject.errors].sort()).toEqual(notFound(MANAGED_KINDS));
});

describe("only the table decides who may change a managed object", () => {
  const ROOT = join(import.meta.dirname, "..");
  const sources = ["v2", "domain"]
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
    )
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts") && !name.startsWith(join("domain", "managed")))
    .map((name) => ({ name: relative(".", name), text: readFileSync(join(ROOT, name), "utf8") }));
  const matching = (pattern: RegExp) => sources.filter(({ text }) => pattern.test(text)).map(({ name }) => name);

  test("only the managed table module reads the manager headers", () => {
    expect(sources.length).toBeGreaterThan(80);
    expect(matching(/\bmanagement\b(?!: UNMANAGED)/)).toEqual([]);
    // The keys of a manager are distinguished by name, so a second key of one name is rejected.
    expect(matching(/new PublicError\(\s*"managed_/)).toEqual(["domain/keys/make-key.ts"]);
  });

  /** Matches statements that change a row of a managed table or lock it for a change. */
  const CHANGES =
    /import (?:type )?\{[^}]*\b(?:lock|update|delete|purge|touch)[A-Z]\w*[^}]*\} from "[./]*db\/(?:apis|roles|permissions|namespaces|overrides|policies|keys|key-changes)\.ts"/;

  /** These files change only fields that a manifest does not contain. */
  const NOT_OF_A_MANIFEST = ["domain/administration/apis.ts", "v2/keys/rerollKey.ts"];

  test("every change of a managed object consults the managed table", () => {
    const changing = matching(CHANGES);
    expect(changing.length).toBeGreaterThan(8);
    const asking = new Set(matching(/\bMANAGED\.\w+/));
    expect(changing.filter((name) => !asking.has(name)).sort()).toEqual(NOT_OF_A_MANIFEST);
  });
});
