import type { Redis } from "ioredis";
import { expect } from "vitest";
import { SET_RECORDS } from "../../edge/projection/scripts.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";

export type RedisCommand = readonly (string | Buffer | number)[];

/** Another workspace that a test may fill. */
export const OTHER_WORKSPACE = "ws_other";

/**
 * Returns commands that no pod user may send. `record` is the key of a record of its workspace, `dump` the result of DUMP, and `keyId` an
 * API key with credits.
 */
export function commandsBeyond(of: {
  prefix: string;
  workspaceId: string;
  keyId: string;
  record: string;
  dump: Buffer;
}): RedisCommand[] {
  const { prefix, workspaceId, keyId, record, dump } = of;
  const keys = new RedisKeys(prefix);
  const other = OTHER_WORKSPACE;
  const own = (rest: string) => `${prefix}:${workspaceId}:${rest}`;
  return [
    ["set", record, "forged"],
    ["set", own("p:{pol_1}"), "forged"],
    ["set", own("w"), "forged"],
    ["hset", own("o:{rlns_1}"), "=x", "forged"],
    ["hset", keys.projectionState(workspaceId), "head", "1"],
    ["xadd", keys.changes(workspaceId), "*", "k", "heartbeat", "t", "9999999999999"],
    ["hset", keys.history(workspaceId), "1", "forged"],
    // The history may be read only by HMGET, because a full range would block Redis.
    ["hgetall", keys.history(workspaceId)],
    ["xrange", keys.changes(workspaceId), "-", "+"],
    ["hmget", own("o:{rlns_1}"), "*"],
    ["evalsha", SET_RECORDS.sha, 1, record, "prj_1", "9", "{}", ""],
    // Commands that could store large values and read them repeatedly by short commands.
    ["hset", own("rl:{x}:1000"), "current", "1"],
    ["hget", own("rl:{x}:1000"), "current"],
    ["set", own("cr:{x}"), "x"],
    ["set", own("events-quota:{x}"), "x"],
    ["get", own("events-quota:{x}")],
    ["getrange", own("rl:{x}:1000"), "0", "-1"],
    ["xrevrange", own("events"), "+", "-"],
    ["xread", "streams", own("events"), "0"],
    ["xadd", own("cr-dirty"), "*", "x", "y"],
    ["sadd", own("rl:{x}:1000"), "x"],
    ["zadd", own("cr-dirty"), "1", "x"],
    ["zrange", own("pods-alive:{pol_1}"), "0", "-1"],
    ["hgetall", own("rl:{x}:1000")],
    ["hmget", own("pods:{pol_1}:pod"), "x"],
    // Memory is freed only in the background by UNLINK.
    ["del", own("rl:{x}:1000")],
    ["del", record],
    ["unlink", record],
    ["expire", record, "1"],
    ["pexpire", record, "1"],
    ["rename", own("cr-dirty"), record],
    ["copy", own("cr-dirty"), record],
    ["restore", own("r:{role_1}"), 0, dump],
    ["sort", own("cr-dirty"), "store", record],
    ["xread", "streams", keys.changes(other), "0"],
    ["getrange", `${prefix}:${other}:k:{x}`, "0", "-1"],
    ["getrange", `other:${workspaceId}:k:{x}`, "0", "-1"],
    ["hset", keys.credits(other, keyId), "spent", "0"],
    ["xadd", keys.events(other), "*", "e", "{}"],
    ["set", keys.eventsQuota(other), "1"],
    ["set", keys.eventsKeeper(), "me"],
    ["xreadgroup", "group", "ingest", "me", "streams", keys.events(workspaceId), ">"],
    ["xgroup", "destroy", keys.events(workspaceId), "ingest"],
    ["eval", "while true do end", 0],
    ["eval", "return redis.call('set', KEYS[1], 'forged')", 1, record],
    ["eval_ro", "while true do end", 0],
    ["script", "load", "return 1"],
    ["script", "flush"],
    ["script", "kill"],
    ["function", "load", "#!lua name=x\nredis.register_function('x', function() end)"],
    ["fcall", "x", 0],
    ["keys", "*"],
    ["scan", "0"],
    ["randomkey"],
    ["dbsize"],
    ["flushall"],
    ["flushdb"],
    ["config", "get", "*"],
    ["config", "set", "maxmemory", "1"],
    ["acl", "list"],
    ["acl", "setuser", "pod", "+@all"],
    ["client", "list"],
    ["client", "kill", "type", "normal"],
    ["client", "pause", "1000"],
    ["monitor"],
    ["debug", "sleep", "1"],
    ["shutdown", "nosave"],
    ["replicaof", "127.0.0.1", "1"],
    ["save"],
    ["module", "list"],
    ["publish", "x", "y"],
    ["subscribe", "x"],
    ["multi"],
    ["watch", record],
    ["object", "encoding", record],
    ["memory", "usage", record],
    ["latency", "reset"],
    ["slowlog", "get"],
    ["swapdb", "0", "1"],
    ["migrate", "127.0.0.1", "1", record, "0", "1"],
    ["wait", "1", "1000"],
  ];
}

/** Sends a command that the server must deny by ACL regardless of other errors. */
export async function expectRefused(pod: Redis, [name = "", ...args]: RedisCommand): Promise<void> {
  const reply = await pod.call(String(name), ...args).then(
    (value) => `allowed: ${String(value)}`,
    (error: Error) => error.message,
  );
  expect(`${[name, ...args].join(" ").slice(0, 60)}: ${reply}`).toMatch(
    /NOPERM|No permission|ACL failure|DEBUG command not allowed/,
  );
}
