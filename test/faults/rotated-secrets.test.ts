import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { makeClient } from "./client.ts";
import { openSystem } from "./system.ts";

/* Secrets in files, as mounted by Kubernetes, are replaced while a process runs. */

test("api-server uses rotated passwords and root key without a restart", async () => {
  const system = await openSystem({ ownRedis: true });
  const dir = mkdtempSync(join(tmpdir(), "postern-secrets-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const role = `rotated_${Date.now()}`;
  const database = new URL(system.databaseUrl);
  const name = database.pathname.slice(1);
  const files = { database: join(dir, "database-url"), redis: join(dir, "redis-url"), rootKey: join(dir, "root-key") };
  const rotate = async (password: string) => {
    await system.db.query(`alter role ${role} password '${password}'`);
    await system.raw.call("ACL", "SETUSER", role, "reset", "on", `>${password}`, "~*", "&*", "+@all");
    database.username = role;
    database.password = password;
    writeFileSync(files.database, `${database.href}\n`);
    writeFileSync(files.redis, system.redisUrl.replace("//", `//${role}:${password}@`));
    writeFileSync(files.rootKey, `root_key_of_password_${password}`);
    await system.db.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = $1", [role]);
    await system.raw.call("CLIENT", "KILL", "USER", role).catch(() => undefined);
  };
  await system.db.query(`create role ${role} login superuser`);
  onTestFinished(async () => {
    await system.db.query(`reassign owned by ${role} to current_user; drop owned by ${role}; drop role ${role}`);
  });
  await system.db.query(`alter database "${name}" owner to ${role}`);
  await rotate("first");
  const api = await system.spawnApi({
    DATABASE_URL: "",
    REDIS_URL: "",
    POSTERN_ROOT_KEY: "",
    DATABASE_URL_FILE: files.database,
    REDIS_URL_FILE: files.redis,
    POSTERN_ROOT_KEY_FILE: files.rootKey,
  });
  const as = (password: string) => makeClient(api.url, `root_key_of_password_${password}`);
  await as("first").data("apis.createApi", { name: "before" });

  await rotate("second");
  await waitFor(
    "the new root key to be accepted, over new connections",
    async () => {
      const { status } = await as("second").call("apis.createApi", { name: "after" });
      return status === 200;
    },
    { deadlineMs: 30_000 },
  );
  await waitFor("all of it to be well", () => as("second").isComplete(), { deadlineMs: 30_000 });
  // Every connection, including relay and change stream, uses the new password.
  const log = api.process.stderr();
  expect(log).toContain("--database-url-file has changed");
  expect(log).toContain("--redis-url-file has changed");
  for (const secret of ["first", "second"]) expect(log).not.toContain(`:${secret}@`);
  expect(await api.process.stop()).toEqual({ code: 0, signal: null });
});
