import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestRedis, type TestRedis } from "../../test/harness/redis.ts";
import { type Cli, openCli } from "../test/cli.ts";

let cli: Cli;
let redis: TestRedis;
let admin: Redis;
beforeAll(async () => {
  [cli, redis] = await Promise.all([openCli(), createTestRedis()]);
  admin = new Redis(redis.url);
});
afterAll(async () => {
  admin.disconnect();
  await Promise.all([cli.close(), redis.close()]);
});

test("redis-acl output is valid for Redis, for any characters in the names", async () => {
  const user = `acl-${redis.prefix.slice(0, -1)}`;
  try {
    for (const args of [
      "--workspace ws_1",
      "--workspace ws_1 --events",
      "--workspace ws_1 --eval",
      "--workspace ws_* --redis-prefix a[b]",
      "--control-plane",
    ]) {
      const { rules } = await cli.json(`redis-acl ${args} --user ${user}`);
      expect(await admin.call("ACL", "SETUSER", user, ...rules)).toBe("OK");
      const { code, out } = await cli.run(`redis-acl ${args} --user ${user}`);
      expect(code).toBe(0);
      const words = ((out[0] ?? "").match(/"(?:[^"\\]|\\.)*"|\S+/g) ?? []).map((word) =>
        word.startsWith('"') ? (JSON.parse(word) as string) : word,
      );
      expect(words).toEqual(["ACL", "SETUSER", user, ...rules]);
    }
  } finally {
    await admin.call("ACL", "DELUSER", user);
  }
});

test.each([
  ["", "set either --workspace or --control-plane"],
  ["--control-plane --workspace ws_1", "set either --workspace or --control-plane"],
  ["--control-plane --events", "--events and --eval are only for the pods' user"],
  ["--workspace ws_1 --user a\tb", "for --user: must be"],
  ["--workspace ws\t1 --user u", "cannot stand in a rule"],
])("redis-acl command with %s is a usage error", async (args, message) => {
  expect(await cli.failure(`redis-acl ${args}`.trim(), 2)).toContain(message);
});
