import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import pino from "pino";
import { hashKey, makeKeyString } from "../../core/keys/key-string.ts";
import { type CompiledPolicy, PolicyInput } from "../../core/policies/policy.ts";
import type { PolicyRecord } from "../../core/policies/stored-policy.ts";
import type { ApiRecord, IdentityRecord, KeyRecord, OverrideRecord, RoleRecord } from "../../core/records.ts";
import { createMemoryEdge, type Edge } from "../../edge/open.ts";
import { overrideRecordId, type RecordKind } from "../../edge/records.ts";
import type { SidecarConfig, Timeouts } from "../../sidecar/config.ts";
import { type Sidecar, startSidecar } from "../../sidecar/start.ts";
import { waitFor } from "./wait.ts";

/* Harness of gate tests: a gate with real sockets between a client and an app, and a writer of records that works like the relay. */

export const WORKSPACE = "ws_test";
export const API = "api_orders";
export const POLICY = "pol_orders";

export const silent = pino({ level: "silent" });

/** Returns a default policy with the changes of the test case. */
export const aPolicy = (changes: Partial<CompiledPolicy> = {}): CompiledPolicy =>
  PolicyInput.parse({
    formatVersion: 1,
    apiId: API,
    mode: "Enforce",
    credentials: [
      { in: "header", name: "Authorization", scheme: "Bearer" },
      { in: "header", name: "X-API-Key" },
    ],
    rules: [],
    onStale: { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 },
    onCounterFailure: "Local",
    onCreditFailure: "Deny",
    allowPaths: [],
    ...changes,
  });

export const aRule = (changes: Partial<CompiledPolicy["rules"][number]> = {}): CompiledPolicy["rules"][number] => ({
  access: "Key",
  creditCost: 1,
  ratelimits: [],
  ...changes,
});

interface WriteOptions {
  /** `false` writes without an announcement, as in a new projection, which is announced as a whole. */
  readonly announced?: boolean;
}

/** Writes records as the relay does. Each write has a newer version. */
export class Records {
  readonly #edge: Edge;
  readonly workspaceId: string;
  #projectionId = "";
  #version = 0;
  #policyVersion = 0;

  constructor(edge: Edge, workspaceId = WORKSPACE) {
    this.#edge = edge;
    this.workspaceId = workspaceId;
  }

  /** Starts a new projection, which discards all records. */
  async begin(projectionId = "projection-1"): Promise<void> {
    this.#projectionId = projectionId;
    await this.#edge.writer.begin(projectionId, [this.workspaceId]);
    await this.#write("workspace", this.workspaceId, { id: this.workspaceId, enabled: true });
    await this.putApi({});
  }

  async complete(): Promise<void> {
    await this.#edge.writer.complete(this.#projectionId, [this.workspaceId]);
    await this.heartbeat();
  }

  /** Sends a heartbeat of this age; 0 is now. */
  async heartbeat(ageMs = 0): Promise<void> {
    const asOfMs = (await this.#edge.writer.nowMs()) - ageMs;
    // The relay also reads the state of the projection first.
    await this.#edge.writer.state();
    await this.#edge.writer.heartbeat(this.#projectionId, asOfMs, [this.workspaceId]);
  }

  async putApi(changes: Partial<ApiRecord>): Promise<void> {
    const api: ApiRecord = { id: API, name: "orders", ...changes };
    await this.#write("api", api.id, api);
  }

  async putWorkspace(enabled: boolean): Promise<void> {
    await this.#write("workspace", this.workspaceId, { id: this.workspaceId, enabled });
  }

  async putIdentity(identity: IdentityRecord): Promise<void> {
    await this.#write("identity", identity.id, identity);
  }

  async putRole(role: RoleRecord): Promise<void> {
    await this.#write("role", role.id, role);
  }

  async putOverride(namespaceId: string, override: OverrideRecord): Promise<void> {
    await this.#write("override", overrideRecordId(namespaceId, override.identifier), override);
  }

  /** Writes a key record and returns the key. A call with the same `key` updates its record. */
  async putKey(
    changes: Partial<KeyRecord> = {},
    key = makeKeyString({ randomBytes: randomBytes(16) }).key,
  ): Promise<string> {
    await this.putAnyKey(key, changes);
    return key;
  }

  /** Writes a key record with members of another version. */
  async putAnyKey(key: string, changes: object, options?: WriteOptions): Promise<void> {
    const record: KeyRecord = {
      keyId: `key_${hashKey(key).slice(0, 8)}`,
      workspaceId: this.workspaceId,
      apiId: API,
      keySpaceId: "ks_orders",
      enabled: true,
      roleIds: [],
      permissions: [],
      ratelimits: [],
      limited: false,
      ...changes,
    };
    await this.#write("key", hashKey(key), record, options);
  }

  /** Writes a record of another version. */
  async putAny(kind: RecordKind, id: string, data: unknown): Promise<void> {
    await this.#write(kind, id, data);
  }

  async deleteKey(key: string): Promise<void> {
    await this.#write("key", hashKey(key), undefined);
  }

  putPolicy(policy: CompiledPolicy): Promise<void> {
    return this.putStoredPolicy(policy);
  }

  /** Writes any stored policy of another version. */
  async putStoredPolicy(policy: unknown): Promise<void> {
    this.#policyVersion += 1;
    const version = this.#policyVersion;
    const record: PolicyRecord = {
      policyId: POLICY,
      name: "orders",
      apiId: API,
      uid: "uid-1",
      generation: version,
      version,
      policy,
    };
    await this.#write("policy", POLICY, record);
  }

  /** Writes a policy record with an unreadable head. */
  async putUnreadablePolicy(): Promise<void> {
    await this.#write("policy", POLICY, { policyId: POLICY, policy: { formatVersion: 99 } });
  }

  async deletePolicy(): Promise<void> {
    await this.#write("policy", POLICY, undefined);
  }

  async #write(kind: RecordKind, id: string, data: unknown, { announced = true }: WriteOptions = {}): Promise<void> {
    this.#version += 1;
    const ref = { workspaceId: this.workspaceId, kind, id };
    await this.#edge.writer.write({
      projectionId: this.#projectionId,
      version: this.#version,
      writes: [{ ref, data }],
      announce: announced,
    });
  }
}

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: string[];
  readonly body: string;
}

export interface TestApp {
  readonly url: string;
  readonly server: Server;
  readonly seen: SeenRequest[];
  close(): Promise<void>;
}

/** Starts an app that responds 200 `ok` and records its requests, or calls `listener`. Port 0 selects a free port. */
export async function startApp(
  listener?: (req: IncomingMessage, res: ServerResponse) => void,
  onPort = 0,
): Promise<TestApp> {
  const seen: SeenRequest[] = [];
  const remember = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    let body = "";
    for await (const chunk of req) body += chunk;
    const { method = "", url = "", headers, rawHeaders } = req;
    seen.push({ method, url, headers, rawHeaders, body });
    res.end("ok");
  };
  const server = createServer(listener ?? ((req, res) => void remember(req, res).catch(() => res.destroy())));
  server.listen(onPort, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    server,
    seen,
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

export interface TestGate {
  readonly edge: Edge;
  readonly records: Records;
  readonly app: TestApp;
  readonly sidecar: Sidecar;
  readonly port: number;
  /** Waits until the gate has processed all writes. */
  caughtUp(): Promise<void>;
  metrics(): Promise<string>;
  readyz(): Promise<HttpResponse>;
  close(): Promise<void>;
}

export interface GateOptions {
  readonly policy?: Partial<CompiledPolicy>;
  readonly edge?: Edge;
  readonly app?: TestApp;
  readonly timeouts?: Partial<Timeouts>;
  readonly config?: Partial<SidecarConfig>;
  /** `false` writes no policy and does not wait for the gate. */
  readonly ready?: boolean;
  /** `false` writes nothing, because Redis is unavailable. */
  readonly written?: boolean;
}

/** Options of a gate that admits every request. */
export const OPEN = { policy: { rules: [aRule({ access: "Anonymous" })] } } satisfies GateOptions;

export async function openGate(options: GateOptions = {}): Promise<TestGate> {
  const edge = options.edge ?? createMemoryEdge();
  const app = options.app ?? (await startApp());
  const records = new Records(edge);
  if (options.written !== false) await records.begin();
  if (options.ready !== false) await records.putPolicy(aPolicy(options.policy));
  if (options.written !== false) await records.complete();
  const sidecar = await startSidecar({
    edge,
    workspaceId: WORKSPACE,
    policyId: POLICY,
    upstream: app.url,
    listen: { host: "127.0.0.1", port: 0 },
    admin: { host: "127.0.0.1", port: 0 },
    podId: "pod-1",
    region: "test",
    errorDocsUrl: "https://docs.test",
    logger: silent,
    ...(options.timeouts === undefined ? {} : { timeouts: options.timeouts }),
    ...options.config,
  });
  const port = Number(new URL(sidecar.url ?? "http://127.0.0.1:0").port);
  const readyz = () => call(Number(new URL(sidecar.adminUrl).port), { path: "/readyz" });
  const metrics = async () => (await call(Number(new URL(sidecar.adminUrl).port), { path: "/metrics" })).body;
  if (options.ready !== false) await waitFor("the gate to be ready", async () => (await readyz()).status === 200);
  return {
    edge,
    records,
    app,
    sidecar,
    port,
    caughtUp: async () => {
      await records.heartbeat();
      await waitFor(
        "the gate to have heard the heartbeat",
        async () => JSON.parse((await readyz()).body).stalenessMs < 500,
      );
    },
    metrics,
    readyz,
    close: async () => {
      await sidecar.close();
      await app.close();
      await edge.close();
    },
  };
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly trailers: NodeJS.Dict<string>;
}

export interface Call {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string> | string[];
  readonly body?: string | Buffer;
}

/** Sends one request on a new connection and returns the complete response. */
export async function call(
  port: number,
  { method = "GET", path = "/", headers = {}, body }: Call = {},
): Promise<HttpResponse> {
  const req = request({
    host: "127.0.0.1",
    port,
    method,
    path,
    agent: false,
    headers: headers as Record<string, string>,
  });
  req.end(body);
  const [res] = (await once(req, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of res) text += chunk;
  return { status: res.statusCode ?? 0, headers: res.headers, body: text, trailers: res.trailers };
}

export const withKey = (key: string, more: Record<string, string> = {}): { headers: Record<string, string> } => ({
  headers: { Authorization: `Bearer ${key}`, ...more },
});

/** Returns the error kind at the end of an error body's type. */
export const kindOf = ({ body }: { body: string }): string => JSON.parse(body).error.type.split("/").at(-1);

export interface RawResponse {
  /** 0 if the connection was closed without a response. */
  readonly status: number;
  readonly text: string;
}

/** Sends bytes unchanged and returns all data until the other side closes the connection. */
export async function sendRaw(port: number, ...pieces: Array<string | Buffer>): Promise<RawResponse> {
  const socket = connect({ host: "127.0.0.1", port });
  const closed = once(socket, "close").catch(() => undefined);
  const read = readAll(socket);
  for (const piece of pieces) socket.write(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece);
  await closed;
  const text = read();
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), text };
}

/** Collects the data that a socket receives. */
export function readAll(socket: Socket): () => string {
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  return () => text;
}

export { waitFor };
