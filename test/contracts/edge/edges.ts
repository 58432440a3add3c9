import { randomUUID } from "node:crypto";
import { createMemoryEdge, type Edge, openRedisEdge } from "../../../edge/open.ts";
import { createTestRedis, startOwnRedis } from "../../harness/redis.ts";

export interface OpenedEdge {
  readonly edge: Edge;
  /** Opens the edge of a second process on the same Redis; an in-process edge returns itself. */
  openAnother(): Promise<Edge>;
  close(): Promise<void>;
}

/** Implementations that run the same suite: in process, on a shared Redis, and on a Redis Cluster of one node. */
export const EDGES: { name: string; open(): Promise<OpenedEdge> }[] = [
  {
    name: "in memory",
    open: async () => {
      const edge = createMemoryEdge();
      return { edge, openAnother: async () => edge, close: () => edge.close() };
    },
  },
  {
    name: "in Redis",
    open: async () => {
      const redis = await createTestRedis();
      return openOn(redis.url, redis.prefix.replace(/:$/, ""), redis.close);
    },
  },
  {
    name: "in a Redis cluster",
    open: async () => {
      const redis = await startOwnRedis({ cluster: true, args: ["--cluster-announce-ip", "127.0.0.1"] });
      return openOn(`${redis.url}?cluster=true`, "ps", redis.stop);
    },
  },
];

export async function openOn(url: string, prefix: string, closeStore: () => Promise<void>): Promise<OpenedEdge> {
  const opened: Edge[] = [];
  const openAnother = async () => {
    const edge = await openRedisEdge({ url, prefix, clientName: "contract-test" });
    opened.push(edge);
    return edge;
  };
  const edge = await openAnother();
  return {
    edge,
    openAnother,
    close: async () => {
      await Promise.all(opened.map((each) => each.close()));
      await closeStore();
    },
  };
}

/** Returns a unique name, because tests share a Redis. */
export const aName = (prefix: string): string => `${prefix}_${randomUUID().replaceAll("-", "").slice(0, 16)}`;
