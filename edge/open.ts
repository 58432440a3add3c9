export type { Edge, EdgeCounters } from "./edge.ts";
export { createMemoryEdge } from "./open-memory.ts";
export { openRedisEdge } from "./open-redis.ts";
