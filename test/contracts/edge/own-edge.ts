import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type Edge, openRedisEdge } from "../../../edge/open.ts";
import { openProjection } from "../../../edge/projection/projection.ts";
import { RedisKeys } from "../../../edge/redis/keys.ts";
import { type OwnRedis, startOwnRedis } from "../../harness/redis.ts";
import { waitFor } from "../../harness/wait.ts";
import { aName } from "./edges.ts";
import { aWorkspace } from "./projected.ts";

/** A Redis that a test file may stop, empty and write to directly; each test has a newly projected workspace. */
export class OwnEdge {
  readonly keys = new RedisKeys();
  projectionId = "";
  ws = aWorkspace();
  #redis: OwnRedis | undefined;
  #raw: Redis | undefined;
  #edge: Edge | undefined;

  get redis(): OwnRedis {
    if (this.#redis === undefined) throw new Error("the tests have not begun");
    return this.#redis;
  }

  /** Returns a second connection beside that of the edge. */
  get raw(): Redis {
    if (this.#raw === undefined) throw new Error("the tests have not begun");
    return this.#raw;
  }

  get edge(): Edge {
    if (this.#edge === undefined) throw new Error("the test has not begun");
    return this.#edge;
  }

  async start(): Promise<void> {
    this.#redis = await startOwnRedis({ args: ["--save", "", "--dbfilename", "dump.rdb"] });
    this.#raw = new Redis(this.redis.url);
    this.#raw.on("error", () => {});
  }

  async stop(): Promise<void> {
    this.raw.disconnect();
    await this.redis.stop();
  }

  async openEdge(): Promise<void> {
    this.#edge = await openRedisEdge({ url: this.redis.url, clientName: "own-edge" });
  }

  connected(): Promise<boolean> {
    return waitFor("the connection", () => this.edge.ping().then(() => true));
  }

  async project(): Promise<void> {
    const { edge, ws } = this;
    this.projectionId = aName("prj");
    await edge.writer.begin(this.projectionId, [ws.workspaceId]);
    await edge.writer.write({ projectionId: this.projectionId, version: 1, writes: ws.writes });
    await edge.writer.complete(this.projectionId, [ws.workspaceId]);
    await this.beat();
  }

  async beat(): Promise<void> {
    await this.edge.writer.heartbeat(this.projectionId, await this.edge.writer.nowMs(), [this.ws.workspaceId]);
  }

  /** Appends an entry with the next number to a change stream without the writer. */
  async append(stream: string, fields: Readonly<Record<string, string>>): Promise<void> {
    const n = await this.raw.hincrby(this.keys.projectionState(stream), "head", 1);
    const entry = { p: this.projectionId, n: String(n), ...fields };
    await this.raw.xadd(this.keys.changes(stream), "*", ...Object.entries(entry).flat());
  }

  /** Returns the retained entries of a change stream in order: number, stream id and other fields. */
  async history(stream: string): Promise<(readonly [n: number, id: string, ...fields: string[]])[]> {
    const all = Object.entries(await this.raw.hgetall(this.keys.history(stream)));
    return all
      .filter(([n]) => /^\d+$/.test(n))
      .map(([n, text]) => [Number(n), ...(JSON.parse(text) as [string])] as const)
      .sort(([a], [b]) => a - b);
  }

  openProjection() {
    const { edge, ws } = this;
    return openProjection({ source: edge.source, stream: edge.stream, follow: { workspaceId: ws.workspaceId } });
  }
}

/** Starts and stops the edge around the tests of a `describe`, at whose top it is called. */
export function useOwnEdge(): OwnEdge {
  const own = new OwnEdge();
  beforeAll(() => own.start());
  afterAll(() => own.stop());
  beforeEach(async () => {
    own.ws = aWorkspace();
    await own.openEdge();
    await own.connected();
    await own.project();
  });
  afterEach(() => own.edge.close());
  return own;
}
