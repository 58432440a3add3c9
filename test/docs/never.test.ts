import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

/* Checks the lines of "Invariants" in docs/architecture.md that can be read from the sources. */

const ROOT = resolve(import.meta.dirname, "../..");

const files = ["api-server", "analytics"]
  .flatMap((part) =>
    readdirSync(join(ROOT, part), { recursive: true, encoding: "utf8" }).map((name) => `${part}/${name}`),
  )
  .filter((name) => name.endsWith(".ts") && !/\.test\.ts$|(^|\/)test\//.test(name))
  .map((name) => ({ name, text: readFileSync(join(ROOT, name), "utf8") }));

/** SQL of the API's tables, and SQL of usage events. */
const WITH_SQL = /^(?:api-server\/db|analytics)\//;
const TABLES =
  "root_keys|apis|identities|keys|key_credits|key_secrets|queued_keys|ratelimits|permissions|roles|role_permissions|key_permissions|key_roles|ratelimit_namespaces|ratelimit_overrides|policies|orphaned_objects|audit_log|migrations|verification_events|ratelimit_events|outbox";
/** A table name that is computed may be any of them. */
const OF_A_WORKSPACE = new RegExp(`\\b(?:from|join|update|into) (?:(?:${TABLES})\\b|\\$\\{)`);

/** The texts in a file that look like a statement. */
const statements = (text: string): string[] =>
  [...text.matchAll(/`([^`]*)`|"((?:[^"\\\n]|\\.)*)"/g)]
    .map(([, template, plain]) => (template ?? plain ?? "").trim().replace(/\s+/g, " "))
    .filter((statement) => /^(with|select|insert into|update|delete from|truncate) /.test(statement));

/** Each of these concerns all workspaces, or rows that were selected by their workspace before. */
const OVER_ALL = [
  // Hashes that exist in any workspace, because they are unique over all workspaces.
  "select hash from keys where hash",
  "select s.encryption_key_id, count(*) as count from (select encryption_key_id from key_secrets",
  // What the gauges tell of all workspaces.
  "select (select count(*) from (select from queued_keys",
  // After the database was restored.
  "update key_credits set rev",
  "update policies set version = greatest",
  // A refill's ids come from a statement that names their workspaces.
  "update key_credits set last_refill_on",
  // The relay carries the marks of all.
  "select coalesce(max(o.seq), 0) as newest from outbox",
  "delete from outbox where seq",
  "select count(*) as depth from (select from outbox",
  // What people see of an installation.
  "select s.encryption_key_id as id",
  // The relay checks which rows of many workspaces still exist, and counts what is projected: of one or of all.
  "select t.id from ${",
  "select count(*) as count from ${",
  // A view of ClickHouse groups the rows of all by their workspace, and passes on what the part that it is put together with selects.
  "select ${columns.join(",
  "select * from ${arriving",
  // The migrations of ClickHouse.
  "select distinct id from ${",
  // A part of a statement that names the workspace.
  "select json_agg(json_build_object('id', l.id",
];

test("SQL on workspace data filters by workspace except in listed statements", () => {
  const found = files
    .filter(({ name }) => WITH_SQL.test(name))
    .flatMap(({ text }) => statements(text))
    .filter((statement) => OF_A_WORKSPACE.test(statement) && !statement.includes("workspace"));
  expect(found.length).toBeGreaterThan(0);
  expect(found.filter((statement) => !OVER_ALL.some((start) => statement.startsWith(start)))).toEqual([]);
  expect(OVER_ALL.filter((start) => !found.some((statement) => statement.startsWith(start)))).toEqual([]);
});

test("SQL on workspace tables occurs only in the database folder", () => {
  const elsewhere = files.filter(
    ({ name, text }) => !WITH_SQL.test(name) && statements(text).some((s) => OF_A_WORKSPACE.test(s)),
  );
  expect(elsewhere.map(({ name }) => name)).toEqual([]);
});

test("cache is invalidated only by outbox entries and explicit negative-cache removals", () => {
  const clearing = files.filter(({ text }) => text.includes("projection.drop(")).map(({ name }) => name);
  expect(clearing.sort()).toEqual([
    "api-server/db/transaction.ts",
    "api-server/domain/keys/migrated-keys.ts",
    "api-server/domain/ratelimits/namespaces-to-limit.ts",
    "api-server/domain/ratelimits/namespaces.ts",
  ]);
});
