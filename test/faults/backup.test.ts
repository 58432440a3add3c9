import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { migrate } from "../../api-server/db/migrate.ts";
import { blocksOf, stepsOf } from "../docs/page.ts";
import { findPostgresPrograms, type OwnPostgres, startOwnPostgres } from "../harness/parts/postgres-programs.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { type LocalApi, openSystem } from "./system.ts";

/* Promises of docs/backup.md: a Postgres dump is the complete backup and is restored into another server while gates run. */

beforeAll(findPostgresPrograms, 600_000);

async function server(): Promise<OwnPostgres> {
  const started = await startOwnPostgres();
  onTestFinished(started.stop);
  return started;
}

const databaseOf = ({ url }: OwnPostgres) => Object.assign(new URL(url), { pathname: "/postern" }).href;

async function query(url: string, text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return await client.query(text).finally(() => client.end());
}

const usageOf = async (api: LocalApi): Promise<number> => {
  const query = "select count(*) as total from key_verifications_v1";
  const [row] = await api.data("analytics.getVerifications", { query });
  return Number(row?.total ?? 0);
};

test("restored database dump is complete, and gates adopt its state", async () => {
  const [here, there] = [await server(), await server()];
  await query(here.url, "create database postern");
  const system = await openSystem({ databaseUrl: databaseOf(here) });
  const first = await system.api();
  const { apiId, keyId, key } = await makeKey(first);
  const gate = await system.gate(first, { apiId });
  await waitFor("the key to be let through", async () => (await gate.status(key)) === 200);
  await waitFor("the usage to be stored", async () => (await usageOf(first)) > 0);
  const usage = await usageOf(first);

  const folder = await mkdtemp(join(tmpdir(), "postern-backup-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "postern.dump");
  // The api-servers are running; a dump is a consistent snapshot.
  await here.run("pg_dump", ["--format=custom", "--file", file, "--dbname", databaseOf(here)]);

  await first.data("keys.updateKey", { keyId, enabled: false });
  const later = await first.data("keys.createKey", { apiId });
  const said = async () => String([await gate.status(key), await gate.status(later.key)]);
  await waitFor("the gate to act", async () => (await said()) === "401,200");
  await first.server.close();
  await here.stop();
  // Gates keep serving their cached data.
  expect(await said()).toBe("401,200");

  await query(there.url, "create database postern");
  // Roles belong to the server and not to the dump; without this one pg_restore fails.
  await query(there.url, "create role postern_analytics nologin noinherit");
  await there.run("pg_restore", ["--no-owner", "--exit-on-error", "--dbname", databaseOf(there), file]);
  const second = await system.api(databaseOf(there));
  await waitFor("the gate to do as then", async () => (await said()) === "200,401");
  expect(await second.code(later.key)).toBe("NOT_FOUND");
  expect(await usageOf(second)).toBeGreaterThanOrEqual(usage);
  await second.data("keys.updateKey", { keyId, enabled: false });
  await waitFor("the gate to hear of changes", async () => (await said()) === "401,401");
  const before = await usageOf(second);
  await waitFor("usage to be stored there", async () => (await usageOf(second)) > before);
});

test("documented backup commands restore data usable by the api-server user", async () => {
  const users = blocksOf("install.md").find(({ language }) => language === "sql")?.text ?? "";
  const lines = stepsOf(blocksOf("backup.md")).map(({ line }) => line);
  const linesOf = (start: RegExp) => lines.filter((line) => start.test(line));
  const urlOf = (postgres: OwnPostgres, user: string) =>
    Object.assign(new URL(postgres.url), { pathname: "/postern", username: user }).href;
  const [here, there] = [await server(), await server()];
  await query(here.url, "create database postern");
  await query(databaseOf(here), users);
  await migrate(urlOf(here, "postern_owner"));
  const system = await openSystem({ databaseUrl: urlOf(here, "postern") });
  const first = await system.api();
  const { keyId, key } = await makeKey(first);
  await first.code(key);
  await waitFor("the usage to be stored", async () => (await usageOf(first)) > 0);
  const usage = await usageOf(first);

  const cwd = await mkdtemp(join(tmpdir(), "postern-backup-"));
  onTestFinished(() => rm(cwd, { recursive: true }));
  // The documented backup user reads every table, unlike the schema owner.
  await query(here.url, blocksOf("backup.md").find(({ language }) => language === "sql")?.text ?? "");
  const [dump = "", ...more] = linesOf(/^pg_dump /);
  expect(more).toEqual([]);
  const owned = here.shell(dump, { cwd, env: { BACKUP_URL: urlOf(here, "postern_owner") } });
  await expect(owned).rejects.toThrow("permission denied");
  await here.shell(dump, { cwd, env: { BACKUP_URL: urlOf(here, "postern_backup") } });

  // Another server gets the roles first; grants in the database are in the dump.
  const logins = users.split("\n").filter((line) => /^CREATE ROLE .* LOGIN /.test(line));
  expect(logins).toHaveLength(2);
  await query(there.url, logins.join(";"));
  const env = { SERVER_URL: there.url, OWNER: "postern_owner", OWNER_URL: urlOf(there, "postern_owner") };
  const moveAside = linesOf(/^psql .*RENAME/);
  const restore = linesOf(/^(psql|createdb|pg_restore) /).filter((line) => !moveAside.includes(line));
  expect([moveAside.length, restore.length]).toEqual([1, 4]);
  for (const line of restore) await there.shell(line, { cwd, env });

  const second = await system.api(urlOf(there, "postern"));
  await second.data("keys.updateKey", { keyId, enabled: false });
  expect(await usageOf(second)).toBe(usage);

  // Restores on the same server, where roles and database exist.
  await second.server.close();
  for (const line of [...moveAside, ...restore.slice(2)]) await there.shell(line, { cwd, env });
  const third = await system.api(urlOf(there, "postern"));
  expect(await usageOf(third)).toBe(usage);
  expect(await third.data("keys.getKey", { keyId })).toMatchObject({ enabled: true });
});
