import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pool } from "pg";
import { migrate } from "../../../api-server/db/migrate.ts";
import { insertMigration } from "../../../api-server/db/migrations-of-keys.ts";
import { ensureWorkspace, registerRootKey } from "../../../api-server/domain/administration/bootstrap.ts";
import { makeId } from "../../../core/ids.ts";
import { makeKeyString } from "../../../core/keys/key-string.ts";
import { createPool } from "../../../postgres/pool.ts";
import { startApp, type TestApp } from "../../harness/gate.ts";
import { freePort } from "../../harness/ports.ts";
import { claimFolder, endUnversioned, FOLDER_PREFIX, FOLDER_VARIABLE } from "./leftovers.ts";
import { Part } from "./part.ts";
import { AbortablePostgres } from "./postgres.ts";
import { LosableRedis } from "./redis.ts";

/*
 * Real parts as processes at fixed addresses, in a folder of their own: Postgres, Redis, api-servers, sidecars.
 */

/** `main` and `second` are well-behaved tenants; `attacker` is not. */
export const WORKSPACES = ["main", "second", "attacker"] as const;
export type WorkspaceName = (typeof WORKSPACES)[number];

export interface Workspace {
  readonly name: WorkspaceName;
  readonly id: string;
  readonly rootKey: string;
  /** The migration by which keys are imported at the start. */
  readonly migrationId: string;
}

export class World {
  readonly folder: string;
  readonly postgres: AbortablePostgres;
  readonly redis: LosableRedis;
  /** A direct connection to Postgres. */
  readonly db: Pool;
  readonly workspaces: Readonly<Record<WorkspaceName, Workspace>>;
  readonly apiServers: Part[] = [];
  readonly sidecars: Array<{ readonly part: Part; readonly workspace: WorkspaceName }> = [];
  readonly #app: TestApp;
  readonly #closers: AsyncDisposableStack;

  constructor(parts: {
    folder: string;
    postgres: AbortablePostgres;
    redis: LosableRedis;
    db: Pool;
    workspaces: Readonly<Record<WorkspaceName, Workspace>>;
    app: TestApp;
    closers: AsyncDisposableStack;
  }) {
    this.folder = parts.folder;
    this.postgres = parts.postgres;
    this.redis = parts.redis;
    this.db = parts.db;
    this.workspaces = parts.workspaces;
    this.#app = parts.app;
    this.#closers = parts.closers;
  }

  get parts(): Part[] {
    return [...this.apiServers, ...this.sidecars.map(({ part }) => part)];
  }

  /** The url of the app behind every sidecar. */
  get appUrl(): string {
    return this.#app.url;
  }

  /** Parts are added one after another, and numbered so. */
  async addApiServer(): Promise<Part> {
    const name = `api-${this.apiServers.length + 1}`;
    const port = String(await freePort());
    const part = this.#part({
      name,
      args: ["api-server", "--host", "127.0.0.1", "--port", port],
      env: { DATABASE_URL: this.postgres.url, REDIS_URL: this.redis.url },
      readyLine: /"msg":"ready".*\n/,
      url: `http://127.0.0.1:${port}`,
    });
    this.apiServers.push(part);
    return part;
  }

  async addSidecar(workspace: WorkspaceName, policyId: string): Promise<Part> {
    const name = `sidecar-${this.sidecars.length + 1}`;
    const [port, adminPort] = [String(await freePort()), String(await freePort())];
    const part = this.#part({
      name,
      args: ["sidecar", "--host", "127.0.0.1", "--port", port, "--admin-port", adminPort, "--pod-id", name],
      env: {
        REDIS_URL: this.redis.url,
        POSTERN_WORKSPACE: this.workspaces[workspace].id,
        POSTERN_POLICY: policyId,
        POSTERN_UPSTREAM: this.appUrl,
        POSTERN_DRAIN_TIMEOUT: "0",
      },
      readyLine: /"msg":"listening".*\n/,
      url: `http://127.0.0.1:${port}`,
      adminUrl: `http://127.0.0.1:${adminPort}`,
    });
    this.sidecars.push({ part, workspace });
    return part;
  }

  #part(options: Omit<ConstructorParameters<typeof Part>[0], "logFile">): Part {
    const part = new Part({ ...options, logFile: join(this.folder, `${options.name}.log`) });
    this.#closers.defer(() => part.end());
    return part;
  }

  /** Stops everything. The folder stays, with logs and everything else that was written there, except the files of Postgres. */
  async close(): Promise<void> {
    // Concurrently, because each takes a moment; the stores are stopped last.
    await Promise.allSettled(this.parts.map((part) => part.end()));
    await this.#closers.disposeAsync();
  }
}

/** Opens stores, workspaces with root keys, and the app; no api-server and no sidecar yet. */
export async function openWorld(): Promise<World> {
  endUnversioned();
  await using closers = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), FOLDER_PREFIX));
  const claim = claimFolder(folder);
  closers.defer(() => claim.release());
  closers.defer(() => rm(join(folder, "postgres"), { recursive: true, force: true }));
  process.env[FOLDER_VARIABLE] = folder;
  const postgres = await AbortablePostgres.start(folder);
  closers.defer(() => postgres.end());
  const redis = await LosableRedis.start();
  closers.defer(() => redis.end());
  await migrate(postgres.url);
  const db = createPool(postgres.url, { connectionsMax: 4, onIdleError: () => undefined });
  closers.defer(() => db.end());
  const workspaces = {
    main: await makeWorkspace(db, "main"),
    second: await makeWorkspace(db, "second"),
    attacker: await makeWorkspace(db, "attacker"),
  };
  // The default app would record every request; this one only answers.
  const app = await startApp((_req, res) => void res.end("ok"));
  closers.defer(() => app.close());
  return new World({ folder, postgres, redis, db, workspaces, app, closers: closers.move() });
}

async function makeWorkspace(db: Pool, name: WorkspaceName): Promise<Workspace> {
  const id = await ensureWorkspace(db, name);
  const rootKey = makeKeyString({ prefix: "root", randomBytes: randomBytes(24) }).key;
  await registerRootKey(db, { workspaceId: id, rootKey });
  const migrationId = makeId("migration", randomBytes(16));
  await insertMigration(db, { workspaceId: id, id: migrationId, name, algorithm: "sha256", createdAt: Date.now() });
  return { name, id, rootKey, migrationId };
}
