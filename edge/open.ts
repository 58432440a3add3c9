export type { Edge, EdgeCounters } from "./edge.ts";
export { createMemoryEdge } from "./open-memory.ts";
export { openRedisEdge, type RedisEdgeOptions } from "./open-redis.ts";
