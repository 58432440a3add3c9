import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { insertRootKey } from "../../api-server/db/root-keys.ts";
import { registerRootKey } from "../../api-server/domain/administration/bootstrap.ts";
import { start } from "../../api-server/start.ts";
import { type Ask, makeResources, type Resources } from "../../api-server/test/resources.ts";
import { makeId } from "../../core/ids.ts";
import { hashKey, makeKeyString } from "../../core/keys/key-string.ts";
import { openRedisEdge } from "../../edge/open.ts";
import { createTestDatabase } from "../harness/postgres.ts";
import { createTestRedis } from "../harness/redis.ts";

/** A listening api-server on a real Postgres and a real Redis. */
export interface Server {
  readonly url: string;
  /** A workspace with a root key that has every permission, and the objects in it. */
  workspace(options?: { quotaPerMinute?: number }): Promise<{ rootKey: string; resources: Resources }>;
  /** A root key with only these permissions. */
  rootKey(workspaceId: string, permissions: readonly string[]): Promise<string>;
  /** For changes that no procedure makes: runs a statement. */
  query(text: string, values: readonly unknown[]): Promise<void>;
  close(): Promise<void>;
}

const LOCAL = { host: "127.0.0.1", port: 0 };

export async function startServer(): Promise<Server> {
  await using parts = new AsyncDisposableStack();
  const database = await createTestDatabase();
  parts.defer(() => database.drop());
  const redis = await createTestRedis();
  parts.defer(() => redis.close());
  const edge = await openRedisEdge({
    url: redis.url,
    prefix: redis.prefix.replace(/:$/, ""),
    clientName: "test-conformance",
  });
  parts.defer(() => edge.close());
  const server = await start({
    databaseUrl: database.url,
    edge,
    ...LOCAL,
    logger: pino({ level: "silent" }),
    encryptionKeys: [{ id: "test", secret: randomBytes(32) }],
  });
  parts.defer(() => server.close());
  const { url } = server;
  const { db } = server.deps;
  let count = 0;

  const askWith =
    (rootKey: string): Ask =>
    async (path, body) => {
      const response = await fetch(`${url}/v2/${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const reply = await response.json();
      if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${JSON.stringify(reply)}`);
      return (reply as { data: unknown }).data;
    };

  const closing = parts.move();
  return {
    url,
    workspace: async ({ quotaPerMinute } = {}) => {
      const workspaceId = `ws_${++count}`;
      const { key: rootKey } = makeKeyString({ prefix: "root", randomBytes: randomBytes(24) });
      await db.query("insert into workspaces (id, name, quota_per_minute, created_at) values ($1, $1, $2, 1)", [
        workspaceId,
        quotaPerMinute ?? null,
      ]);
      await registerRootKey(db, { workspaceId, rootKey });
      return { rootKey, resources: makeResources(db, { workspaceId, ask: askWith(rootKey) }) };
    },
    rootKey: async (workspaceId, permissions) => {
      const { key, start } = makeKeyString({ prefix: "root", randomBytes: randomBytes(24) });
      await insertRootKey(db, {
        id: makeId("rootKey", randomBytes(16)),
        workspaceId,
        hash: hashKey(key),
        start,
        name: null,
        permissions,
        expiresAt: null,
        createdAt: 1,
      });
      return key;
    },
    query: async (text, values) => void (await db.query(text, [...values])),
    close: () => closing.disposeAsync(),
  };
}
