import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { migrate } from "../../api-server/db/migrate.ts";
import { createEmptyDatabase } from "../harness/postgres.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openSystem } from "./system.ts";

test("migration user owns the schema, and api-servers use a member role", async () => {
  const database = await createEmptyDatabase();
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  const [owner, app] = ["o", "a"].map((name) => `t_${name}_${randomBytes(5).toString("hex")}`);
  onTestFinished(async () => {
    await admin.end();
    await database.drop();
    const server = new pg.Client({
      connectionString: Object.assign(new URL(database.url), { pathname: "/postgres" }).href,
    });
    await server.connect();
    await server.query(`drop role ${app}; drop role ${owner}`);
    await server.end();
  });
  const name = new URL(database.url).pathname.slice(1);
  // Setup of docs/install.md.
  await admin.query(`
    create role ${owner} login password 'of_the_owner';
    create role ${app} login password 'of_the_app' in role ${owner};
    grant create on database "${name}" to ${owner};
    grant create on schema public to ${owner};
    create extension if not exists pg_trgm;
  `);
  const as = (username: string | undefined, password: string) =>
    Object.assign(new URL(database.url), { username, password }).href;
  await migrate(as(owner, "of_the_owner"));

  const system = await openSystem({ databaseUrl: as(app, "of_the_app") });
  const api = await system.api();
  const { apiId, key } = await makeKey(api);
  const gate = await system.gate(api, { apiId });
  await waitFor("the key to be let through", async () => (await gate.status(key)) === 200);
  const usage = async () => (await admin.query("select from verification_events")).rowCount ?? 0;
  await waitFor("usage to be stored, in a partition of today", async () => (await usage()) > 0);
  const tables = "select tableowner from pg_tables where schemaname = 'public' and tablename = 'keys'";
  expect((await admin.query(tables)).rows).toEqual([{ tableowner: owner }]);
});
