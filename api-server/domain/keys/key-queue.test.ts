import { randomBytes } from "node:crypto";
import type { PoolClient } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
import { waitFor } from "../../../test/harness/wait.ts";
import { countKeySecrets } from "../../db/key-secrets.ts";
import { lockDueKeys, postponeQueuedKey } from "../../db/queued-keys.ts";
import { buildTestApp, type TestApp, type Workspace } from "../../test/app.ts";
import { openKeyQueue, type TestKeyQueue } from "../../test/key-queue.ts";
import { RETRIES_MAX } from "./key-queue.ts";
import { QUEUED_KEYS_MAX } from "./queue-keys.ts";
import { giveUpQueuedKey } from "./queued-key-outcomes.ts";

/*
 * What becomes of keys that were accepted. Each test has a workspace and a queue of its own, and no other has keys that wait.
 */

let t: TestApp;
let queue: TestKeyQueue;
let mine: Workspace;
let apiId: string;
/** Stands still, so that nothing becomes due while a slow machine looks at what happened. */
let clockMs = Date.now();
const advance = (ms: number): void => {
  clockMs += ms;
};
beforeAll(async () => {
  t = await buildTestApp({ deps: () => ({ nowMs: () => clockMs }) });
});
beforeEach(async () => {
  await t.deps.db.query("truncate queued_keys");
  t.logs.length = 0;
  queue = openKeyQueue(t.deps);
  mine = await t.makeWorkspace();
  ({ apiId } = await apiOf(mine));
});
afterAll(() => t.close());

const newSecret = () => `old_${randomBytes(12).toString("hex")}`;

interface Place {
  readonly apiId: string;
  readonly rootKey: string;
}

async function apiOf({ rootKey }: Workspace): Promise<Place> {
  const { apiId: id } = await t.data("apis.createApi", { name: "another" }, { rootKey });
  return { apiId: id, rootKey };
}

const enqueue = (keys: readonly object[], { apiId: id, rootKey }: Partial<Place> = {}) =>
  t.call(
    "v1/migrations.enqueueKeys",
    { migrationId: "mig", apiId: id ?? apiId, keys },
    { rootKey: rootKey ?? mine.rootKey },
  );
const accepted = async (...given: Parameters<typeof enqueue>) => expect((await enqueue(...given)).status).toBe(202);

/** As `t.data`, in the workspace of the test. */
const ask = (path: string, body: unknown) => t.data(path, body, { rootKey: mine.rootKey });

const codeOf = async (secret: string): Promise<string> =>
  (await t.data("v1/keys.verifyKey", { key: secret }, { rootKey: null })).code;

const query = async (text: string, values: readonly unknown[] = []) =>
  (await t.deps.db.query<Record<string, unknown>>(text, [...values])).rows;
const keysOf = ({ id }: Workspace) => query("select from keys where workspace_id = $1", [id]);
const waiting = async () =>
  (await query("select failures, due_at from queued_keys order by position")) as { failures: number; due_at: number }[];
const failures = (reason: string) => queue.metric(`postern_key_queue_failures_total{reason="${reason}"}`);
const givenUp = (reason: string) => queue.metric(`postern_key_queue_given_up_total{reason="${reason}"}`);
const migrationErrors = () => t.logs.filter((line) => line.includes("migration error")).map((line) => JSON.parse(line));

describe("a key that cannot be created yet", () => {
  test("queued key is created once its references exist, and does not delay other keys until then", async () => {
    const [bad, good] = [newSecret(), newSecret()];
    await accepted([{ plaintext: bad, roles: ["Späte"], permissions: ["late.slug"] }, { plaintext: good }]);
    await queue.work();
    expect([await codeOf(bad), await codeOf(good)]).toEqual(["NOT_FOUND", "VALID"]);
    await ask("permissions.createRole", { name: "Späte" });
    advance(2_000);
    await queue.work();
    expect(await codeOf(bad)).toBe("NOT_FOUND");
    await ask("permissions.createPermission", { name: "late", slug: "late.slug" });
    advance(4_000);
    await queue.work();
    expect(await codeOf(bad)).toBe("VALID");
    expect(await waiting()).toEqual([]);
    expect([await failures("precondition_failed"), await givenUp("precondition_failed")]).toEqual([2, 0]);
    expect(await queue.metric("postern_key_queue_created_total")).toBe(2);
    expect(migrationErrors()).toEqual([]);
  });

  test("queued key is retried with doubling delay from 2 s and dropped after ten retries", async () => {
    const secret = newSecret();
    const reply = await enqueue([{ plaintext: newSecret() }, { plaintext: secret, roles: ["nobody"] }]);
    const waits: number[] = [];
    for (let tries = 1; tries <= RETRIES_MAX; tries++) {
      await queue.work();
      const [row] = await waiting();
      expect(row?.failures).toBe(tries);
      const waitMs = (row?.due_at ?? 0) - clockMs;
      waits.push(waitMs / 1000);
      advance(waitMs - 1);
      await queue.work();
      expect((await waiting())[0]?.failures, "not before its time").toBe(tries);
      advance(1);
    }
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]);
    await queue.work();
    expect(await waiting()).toEqual([]);
    expect(await failures("precondition_failed")).toBe(RETRIES_MAX + 1);
    expect(await givenUp("precondition_failed")).toBe(1);
    expect(migrationErrors()).toMatchObject([
      {
        level: 50,
        reason: "precondition_failed",
        detail: "These roles and permissions do not exist in the workspace: role nobody.",
        workspaceId: mine.id,
        apiId,
        migrationId: "mig",
        requestId: reply.headers["x-request-id"],
        position: 1,
        tries: RETRIES_MAX + 1,
      },
    ]);
    const audited = (await t.audit(mine.id)).filter(({ event }) => event === "key.give_up");
    expect(audited).toMatchObject([
      { actor: { type: "system" }, targets: [{ type: "key" }, { id: apiId }, { id: "mig" }] },
    ]);
    expect(await codeOf(secret)).toBe("NOT_FOUND");
  });

  test("queued key whose hash is taken fails with key_already_exists and is retried", async () => {
    const [deleted, foreign, twice] = [newSecret(), newSecret(), newSecret()];
    const other = await apiOf(await t.makeWorkspace());
    const { keyIds } = await ask("v1/migrations.createKeys", [{ apiId, plaintext: deleted }]);
    await ask("v1/keys.deleteKey", { keyId: keyIds[0] });
    await accepted([{ plaintext: foreign, name: "first" }], other);
    await queue.work();
    await accepted([
      { plaintext: deleted },
      { plaintext: foreign },
      { plaintext: twice, name: "first" },
      { plaintext: twice, name: "second" },
    ]);
    await queue.work();
    expect(await failures("key_already_exists")).toBe(3);
    const held = await t.data("v1/keys.verifyKey", { key: twice }, { rootKey: null });
    expect(held).toMatchObject({ code: "VALID", name: "first" });
    // The hash becomes free when the deleted row is removed.
    await query("delete from keys where id = $1", [keyIds[0]]);
    advance(2_000);
    await queue.work();
    expect(await codeOf(deleted)).toBe("VALID");
    expect(await waiting()).toMatchObject([{ failures: 2 }, { failures: 2 }]);
  });

  test("queued key is dropped immediately when its API or workspace was deleted", async () => {
    const other = await t.makeWorkspace();
    await accepted([{ plaintext: newSecret() }]);
    await accepted([{ plaintext: newSecret() }], await apiOf(other));
    await ask("apis.deleteApi", { apiId });
    await query("update workspaces set deleted_at = 1 where id = $1", [other.id]);
    await queue.work();
    expect(await waiting()).toEqual([]);
    expect(await givenUp("api_not_found")).toBe(2);
    expect(
      migrationErrors()
        .map(({ workspaceId }) => workspaceId)
        .sort(),
    ).toEqual([mine.id, other.id].sort());
    expect([await keysOf(mine), await keysOf(other)]).toEqual([[], []]);
  });

  test("queued key with an unreadable row is dropped without delaying other keys", async () => {
    const good = newSecret();
    await accepted([{ plaintext: newSecret() }, { plaintext: good }]);
    await query(`update queued_keys set definition = '{"roles": 7}', requested_by = '[]' where position = 0`);
    await queue.work();
    expect(await codeOf(good)).toBe("VALID");
    expect(await failures("unexpected_error")).toBe(1);
    expect(t.logs.filter((line) => line.includes("a queued key failed; retrying"))).toHaveLength(1);
    for (let tries = 1; tries <= RETRIES_MAX; tries++) {
      advance(1_100_000);
      await queue.work();
    }
    expect(await givenUp("unexpected_error")).toBe(1);
  });
});

test("queued key written by another version is created: unknown members are ignored, missing ones get defaults", async () => {
  const secret = newSecret();
  await accepted([{ plaintext: secret, name: "old" }]);
  await query(`update queued_keys set definition = '{"name": "old", "later": 1}',
                                      requested_by = jsonb_build_object('rootKeyId', requested_by ->> 'rootKeyId', 'later', 1)`);
  await queue.work();
  expect(await t.data("v1/keys.verifyKey", { key: secret }, { rootKey: null })).toMatchObject({
    code: "VALID",
    name: "old",
  });
});

describe("several api-servers", () => {
  test("several api-servers share the key queue and create each key only once", async () => {
    const queues = [queue, openKeyQueue(t.deps), openKeyQueue(t.deps)];
    const secrets: string[] = [];
    let created: number[] = [];
    // On a busy machine, two servers may create all keys before the third one starts, so that it gets some of the next ones.
    do {
      const more = Array.from({ length: 60 }, newSecret);
      secrets.push(...more);
      await accepted(more.map((plaintext) => ({ plaintext, externalId: "unused", ownerId: "one_owner" })));
      await Promise.all(queues.map((one) => one.work()));
      await queue.work();
      created = await Promise.all(queues.map((one) => one.metric("postern_key_queue_created_total")));
    } while (Math.min(...created) === 0 && secrets.length < 600);
    expect(created.reduce((sum, count) => sum + count)).toBe(secrets.length);
    expect(Math.min(...created)).toBeGreaterThan(0);
    for (const secret of secrets) expect(await codeOf(secret)).toBe("VALID");
    const events = (await t.audit(mine.id)).map(({ event }) => event);
    expect(events.filter((event) => event === "key.create")).toHaveLength(secrets.length);
    expect(events.filter((event) => event === "identity.create")).toHaveLength(1);
  });
});

test("queued key retried by another process is neither postponed twice nor dropped", async () => {
  await accepted([{ plaintext: newSecret(), roles: ["nobody"] }]);
  const workspaceId = mine.id;
  const [row] = await lockDueKeys(t.deps.db, { workspaceId, nowMs: clockMs, max: 1 });
  if (row === undefined) throw new Error("no key is due");
  await queue.work();
  const read = { workspaceId, keyId: row.key_id, failures: row.failures };
  expect(await postponeQueuedKey(t.deps.db, { ...read, dueAt: 1 })).toBe(false);
  expect(await giveUpQueuedKey(t.deps.db, t.deps, { row, reason: "late" })).toBe(false);
  const [left] = await waiting();
  expect(left?.failures).toBe(1);
  expect(left?.due_at).toBeGreaterThan(t.deps.nowMs());
  expect((await t.audit(workspaceId)).map(({ event }) => event)).not.toContain("key.give_up");
});

/** Begins a transaction that has stored a key with this hash: another one with the hash waits for its end. */
async function holdHash(secret: string): Promise<PoolClient> {
  const tx = await t.deps.db.connect();
  await tx.query("begin");
  await tx.query(
    "insert into keys (id, workspace_id, api_id, hash, start, created_at) values ('key_' || gen_random_uuid(), $1, $2, $3, '', 1)",
    [mine.id, apiId, hashKey(secret)],
  );
  return tx;
}

/** The process id of the connection that waits for the hash. */
const waiter = () =>
  waitFor("a connection that waits for the hash", async () => {
    const [row] = await query(
      `select pid from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into keys%'`,
    );
    return row?.pid as number | undefined;
  });

describe("while a key's transaction is in progress", () => {
  test("queued key is created exactly once after a process crashed in the creating transaction", async () => {
    const secret = newSecret();
    const holder = await holdHash(secret);
    await accepted([{ plaintext: secret, ownerId: "owner_of_it" }]);
    const round = queue.queue.round();
    await query("select pg_terminate_backend($1)", [await waiter()]);
    await round;
    await holder.query("rollback");
    holder.release();
    expect(await waiting()).toMatchObject([{ failures: 0 }]);
    expect(await keysOf(mine)).toEqual([]);
    expect(await query("select from identities where workspace_id = $1", [mine.id])).toEqual([]);
    expect(await queue.metric('postern_background_failures_total{loop="key-queue"}')).toBe(1);

    await queue.work();
    expect(await codeOf(secret)).toBe("VALID");
    expect(await waiting()).toEqual([]);
    expect((await t.audit(mine.id)).filter(({ event }) => event === "key.create")).toHaveLength(1);
  });

  test("queued key whose transaction is blocked delays no other key or workspace", async () => {
    const [held, beside, elsewhere] = [newSecret(), newSecret(), newSecret()];
    const holder = await holdHash(held);
    await accepted([{ plaintext: held }]);
    const round = queue.queue.round();
    await waiter();
    await accepted([{ plaintext: beside }]);
    await accepted([{ plaintext: elsewhere }], await apiOf(await t.makeWorkspace()));
    await openKeyQueue(t.deps).work();
    expect([await codeOf(beside), await codeOf(elsewhere)]).toEqual(["VALID", "VALID"]);
    expect(await waiting()).toMatchObject([{ failures: 0 }]);
    await round;
    await waitFor("the end of its wait", async () => (await waiting())[0]?.failures === 1);
    await holder.query("rollback");
    holder.release();
    advance(2_000);
    await queue.work();
    expect(await codeOf(held)).toBe("VALID");
  });
});

test("thousands of queued keys of one workspace do not delay another workspace", async () => {
  const other = await apiOf(await t.makeWorkspace());
  for (let calls = 0; calls < 5; calls++) {
    await accepted(Array.from({ length: 100 }, () => ({ plaintext: newSecret() })));
  }
  const theirs = newSecret();
  await accepted([{ plaintext: theirs }], other);
  expect(await queue.queue.round()).toBe(true);
  expect(await codeOf(theirs)).toBe("VALID");
  expect((await waiting()).length).toBeGreaterThanOrEqual(250);
});

test("key queue processes no further keys after it is closed", async () => {
  await accepted([{ plaintext: newSecret() }]);
  queue.queue.close();
  await queue.work();
  expect(await waiting()).toHaveLength(1);
});

test("key queue exposes no plaintext key in tables, logs or responses", async () => {
  const { apiId: vaulted } = await ask("apis.createApi", { name: "vaulted" });
  await query("update apis set key_encryption = true where id = $1", [vaulted]);
  const secrets = Array.from({ length: 4 }, newSecret);
  const replies: string[] = [];
  for (const id of [apiId, vaulted]) {
    const [good, bad] = secrets.splice(0, 2) as [string, string];
    secrets.push(good, bad);
    const reply = await enqueue(
      [
        { plaintext: good, name: "good" },
        { plaintext: bad, roles: ["nobody"] },
      ],
      { apiId: id },
    );
    replies.push(JSON.stringify(reply));
  }
  const found = async () => {
    const tables = await query(
      "select table_name as name from information_schema.tables where table_schema = 'public'",
    );
    const rows = await Promise.all(tables.map(({ name }) => query(`select to_jsonb(r)::text as row from "${name}" r`)));
    expect(rows.flat().length).toBeGreaterThan(0);
    const texts = [...rows.flat().map(({ row }) => String(row)), ...t.logs, ...replies];
    const forms = secrets.flatMap((secret) => [secret, Buffer.from(secret).toString("hex")]);
    return texts.filter((text) => forms.some((form) => text.includes(form)));
  };
  expect(await waiting()).toHaveLength(4);
  expect(await query("select from queued_keys where ciphertext is not null")).toHaveLength(2);
  expect(await countKeySecrets(t.deps.db)).toEqual([{ encryption_key_id: "test", count: 2 }]);
  expect(await found()).toEqual([]);
  for (let tries = 0; tries <= RETRIES_MAX; tries++) {
    await queue.work();
    advance(1_100_000);
  }
  expect(await waiting()).toEqual([]);
  expect(migrationErrors()).toHaveLength(2);
  expect(await query("select from key_secrets where workspace_id = $1", [mine.id])).toHaveLength(1);
  expect(await found()).toEqual([]);
});

test("key queue limit of a workspace rejects all keys of a call with 429", async () => {
  const other = await apiOf(await t.makeWorkspace());
  await query(
    `insert into queued_keys (key_id, workspace_id, api_id, migration_id, position, hash, definition, requested_by, enqueued_at, due_at)
     select 'key_' || n, $1, $2, 'mig', 0, n, '{}', '{}', 1, 9000000000000
       from generate_series(1, $3::integer) as n`,
    [mine.id, apiId, QUEUED_KEYS_MAX - 2],
  );
  const keys = (count: number) => Array.from({ length: count }, () => ({ plaintext: newSecret() }));
  const refused = await enqueue(keys(3));
  expect([refused.status, refused.body.error.code]).toEqual([429, "RATE_LIMITED"]);
  expect(refused.body.error.message).toContain("100000");
  expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  await accepted(keys(2));
  expect((await enqueue(keys(1))).status).toBe(429);
  await accepted(keys(100), other);
  expect(await query("select count(*) as count from queued_keys")).toEqual([{ count: QUEUED_KEYS_MAX + 100 }]);
  await queue.work();
  await accepted(keys(2));
});

test("key queue metrics report its length and the age of its oldest entry", async () => {
  const measured = async () => {
    await queue.queue.measure();
    return [await queue.metric("postern_key_queue_waiting"), await queue.metric("postern_key_queue_oldest_seconds")];
  };
  expect(await measured()).toEqual([0, 0]);
  await accepted([{ plaintext: newSecret() }]);
  advance(90_000);
  await accepted([{ plaintext: newSecret() }], await apiOf(await t.makeWorkspace()));
  expect(await measured()).toEqual([2, 90]);
  await queue.work();
  expect(await measured()).toEqual([0, 0]);
});
