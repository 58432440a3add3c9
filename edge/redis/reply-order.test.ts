import { expect, onTestFinished, test } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import { openFaultLine } from "../../test/harness/fault-line.ts";
import { API, Records, WORKSPACE } from "../../test/harness/gate.ts";
import { createTestRedis } from "../../test/harness/redis.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { openRedisEdge } from "../open.ts";
import { connectRedis } from "./connect.ts";

/* A proxy sends wrong replies to several commands once and works again afterwards. */

const LOST = { kind: "empty", response: "$-1\r\n" } as const;

test("a Redis connection that lost replies is closed and replaced", async () => {
  const { url, prefix, close } = await createTestRedis();
  onTestFinished(close);
  const line = await openFaultLine(url);
  onTestFinished(() => line.close());
  const client = connectRedis({ url: line.url, clientName: "order" });
  onTestFinished(() => client.disconnect());
  const read = (name: string) => client.get(`${prefix}${name}`);
  await waitFor("the connection", () => client.status === "ready");
  for (const name of ["a", "b", "c"]) await client.set(`${prefix}${name}`, name);
  line.disturb(LOST);
  const lost = Promise.allSettled(["a", "b", "c"].map(read));
  await new Promise((resolve) => setTimeout(resolve, 200));
  line.disturb(undefined);
  // The replies are out of order; otherwise the test would prove nothing.
  expect(await Promise.race([read("a"), read("b"), lost])).not.toBe("b");
  await waitFor("replies in order", async () => {
    const replies = await Promise.all(["a", "b", "c"].map((name) => read(name).catch(() => undefined)));
    return replies.join("") === "abc";
  });
  await lost;
});

test("lost Redis replies never assign a record to another key", async () => {
  const { url, prefix, close } = await createTestRedis();
  onTestFinished(close);
  const line = await openFaultLine(url);
  onTestFinished(() => line.close());
  const open = async (at: string) => {
    const edge = await openRedisEdge({ url: at, prefix: prefix.replace(/:$/, ""), clientName: "order" });
    onTestFinished(() => edge.close());
    return edge;
  };
  const [direct, edge] = [await open(url), await open(line.url)];
  const records = new Records(direct);
  await records.begin();
  await records.complete();
  const keys = await Promise.all([...Array(20).keys()].map((i) => records.putKey({ externalId: `of-${i}` } as object)));
  const idOf = (key: string) => `key_${hashKey(key).slice(0, 8)}`;
  let right = 0;
  const readAll = async (asked = keys): Promise<number> => {
    const found = await Promise.all(
      asked.map(async (key) => {
        const read = await edge.source.read([{ workspaceId: WORKSPACE, kind: "key", id: hashKey(key) }]);
        const [record] = read.usable ? read.records : [];
        if (record?.state !== "found") return 0;
        expect(record.data).toMatchObject({ keyId: idOf(key), apiId: API });
        return 1;
      }),
    );
    const all = found.reduce<number>((sum, one) => sum + one, 0);
    right += all;
    return all;
  };
  await waitFor("all to be read", async () => (await readAll()) === keys.length);
  for (let round = 0; round < 3; round++) {
    // Drops exactly the replies of one read, so that the following replies look like those of a read.
    line.disturb({ kind: "empty", response: "" });
    const during = readAll(keys.slice(round, round + 1));
    await new Promise((resolve) => setTimeout(resolve, 50));
    line.disturb(undefined);
    await Promise.all([during, readAll(), readAll()]);
  }
  await waitFor("all to be read", async () => (await readAll()) === keys.length);
  expect(right).toBeGreaterThan(keys.length);
});
