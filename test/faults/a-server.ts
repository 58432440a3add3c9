import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { type ApiServer, start } from "../../api-server/start.ts";
import type { Consumed } from "../../edge/counters/contract.ts";
import { type Edge, openRedisEdge } from "../../edge/open.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import { openProjection } from "../../edge/projection/projection.ts";
import { waitFor } from "../harness/wait.ts";

/** What a caller of the API got. */
export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  readonly body: any;
}

/** A caller of an api-server, wherever it runs. */
export class Caller {
  readonly url: string;
  readonly rootKey: string;

  constructor(url: string, rootKey: string) {
    this.url = url;
    this.rootKey = rootKey;
  }

  /** `POST /v2/<path>`; throws when there is no answer. */
  async call(path: string, body: unknown): Promise<Reply> {
    const response = await fetch(`${this.url}/v2/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.rootKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  }

  /** `data` of a success; anything else throws. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  async data(path: string, body: unknown): Promise<any> {
    const reply = await this.call(path, body);
    if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${JSON.stringify(reply.body.error)}`);
    return reply.body.data;
  }

  async isReady(): Promise<boolean> {
    return (await fetch(`${this.url}/readyz`)).status === 200;
  }
}

export const aRootKey = (): string => `test_${randomBytes(24).toString("base64url")}`;

/** A whole api-server in this process, ready, on a store that the test may hurt. */
export interface RunningServer extends Caller {
  readonly api: ApiServer;
  readonly edge: Edge;
  readonly workspaceId: string;
  stop(): Promise<void>;
}

export async function startServer(options: { databaseUrl: string; redisUrl: string }): Promise<RunningServer> {
  const rootKey = aRootKey();
  const edge = await openRedisEdge({ url: options.redisUrl, clientName: "faults-api" });
  const api = await start({
    databaseUrl: options.databaseUrl,
    edge,
    host: "127.0.0.1",
    port: 0,
    rootKey,
    logger: pino({ level: "silent" }),
  });
  const { workspaceId } = await api.devRootKey(rootKey);
  const caller = new Caller(api.url, rootKey);
  await waitFor("the api-server to be ready", () => caller.isReady());
  const stop = async () => {
    await api.close();
    await edge.close();
  };
  return Object.assign(caller, { api, edge, workspaceId, stop });
}

/** What a sidecar has: the records of its workspace, and the shared counters. */
export interface Pod {
  readonly projection: Projection;
  /** Spends from a key as a sidecar does, once. */
  spend(keyId: string, cost?: number): Promise<Consumed>;
  close(): Promise<void>;
}

export async function startPod(options: { redisUrl: string; workspaceId: string }): Promise<Pod> {
  const { redisUrl, workspaceId } = options;
  const edge = await openRedisEdge({ url: redisUrl, clientName: "faults-pod" });
  const projection = await openProjection({ source: edge.source, feed: edge.feed, follow: { workspaceId } });
  const counters = edge.counters({ timeoutMs: 1000 });
  return {
    projection,
    spend: (keyId, cost = 1) => counters.consume({ limits: [], credits: { workspaceId, keyId, cost } }),
    close: async () => {
      await projection.close();
      await edge.close();
    },
  };
}
