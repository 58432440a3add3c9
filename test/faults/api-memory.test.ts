import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { everyProcedure, sampleCallsOf } from "../../api-server/test/every-procedure.ts";
import { requestOf } from "../../api-server/test/request.ts";
import { makeResources, type Resources } from "../../api-server/test/resources.ts";
import { parseQuantity } from "../../operator/injection/quantity.ts";
import { bundle } from "../../scripts/bundle.ts";
import { type RunningProcess, startProcess } from "../harness/process.ts";
import { openMemoryBound } from "../load/memory-bound.ts";
import { makeClient, type Reply } from "./client.ts";
import { bodiesOfMostValues, largestBody } from "./largest-body.ts";
import { makeWorkspace, openSystem, type System } from "./system.ts";

/*
 * The program of the api-server image in a cgroup with the memory limit of the chart. Each procedure gets its largest bodies, two from each
 * of two workspaces concurrently, which is the maximum of one process, while a third workspace is served.
 */

const CHART = resolve(import.meta.dirname, "../../charts/postern/values.yaml");
const EACH = 2;
/** Roles must exist before a key gets them. */
const ROLES = 100;

interface Sender {
  readonly rootKey: string;
  readonly resources: Resources;
}

test("largest request bodies neither kill an api-server nor block other clients", async () => {
  const system = await openSystem();
  const { server, url, chargedMb, limitMb } = await startBounded(system);
  let ended: string | undefined;
  void server.exited.then(({ code, signal }) => {
    ended = signal ?? `code ${code}`;
  });
  const ids = ["one", "another", "third"];
  const workspaces = await Promise.all(ids.map((id) => makeWorkspace(system, `ws_${id}`)));
  const [one, another, third] = workspaces.map(({ workspaceId, rootKey }): Sender => {
    const { data } = makeClient(url, rootKey);
    return { rootKey, resources: makeResources(system.db, { workspaceId, ask: data }) };
  });
  if (one === undefined || another === undefined || third === undefined) throw new Error("there are three");
  for (const { resources } of [one, another]) {
    for (let i = 0; i < ROLES; i++) await resources.ask("permissions.createRole", { name: `editor${i}` });
  }
  const { apiId } = await third.resources.key();

  for (const { path, isOpen, schema } of everyProcedure) {
    if (isOpen || requestOf(path, {}).method === "GET") continue;
    const senders = await Promise.all(
      [one, another].map(async ({ rootKey, resources }) => {
        const { body } = await sampleCallsOf(path).always(resources);
        const bodies = { largest: largestBody(schema, body), ...bodiesOfMostValues(body) };
        return { rootKey, bodies };
      }),
    );
    for (const name of ["largest", "most", "tooMany"] as const) {
      const sent = senders.flatMap(({ rootKey, bodies }) => {
        const body = bodies[name];
        const once = (): Promise<Reply> =>
          makeClient(url, rootKey)
            .call(path, body)
            .catch(() => ({ status: 0, body: {} }));
        return body === undefined ? [] : Array.from({ length: EACH }, once);
      });
      const beside = makeClient(url, third.rootKey).call("apis.getApi", { apiId });
      const replies = await Promise.all(sent);
      expect([path, name, ended, (await beside).status]).toEqual([path, name, undefined, 200]);
      const isTooMany = ({ status, body }: Reply) => status === 400 && JSON.stringify(body).includes("too many values");
      const isJudged = ({ status }: Reply) => status >= 200 && status < 500 && status !== 413;
      for (const reply of replies) {
        const isExpected = isTooMany(reply) === (name === "tooMany") && isJudged(reply);
        expect([path, name, reply, isExpected]).toEqual([path, name, reply, true]);
      }
    }
  }
  // A body of 10 MiB, whose parsed form took a second of CPU and 600 MB before values were counted.
  const zeros = `[${"0,".repeat(5_000_000)}0]`;
  const keys = [one, another].flatMap(({ rootKey }) => [rootKey, rootKey]);
  const refused = await Promise.all(keys.map((key) => makeClient(url, key).call("ratelimit.multiLimit", zeros)));
  expect(refused.map(({ status }) => status)).toEqual([400, 400, 400, 400]);
  expect([ended, await chargedMb()]).toEqual([undefined, expect.toSatisfy((mb: number) => mb < 0.95 * limitMb)]);
}, 400_000);

/** Starts the process as in a pod and stops it at the end of the test. */
async function startBounded(system: System): Promise<{
  server: RunningProcess;
  url: string;
  chargedMb: () => Promise<number>;
  limitMb: number;
}> {
  const bytes = parseQuantity(parse(readFileSync(CHART, "utf8")).apiServer.resources.limits.memory) ?? 0;
  const bound = await openMemoryBound(bytes);
  if (bound === undefined) throw new Error("this test makes a cgroup, which needs root");
  onTestFinished(() => bound.close());
  const dir = await mkdtemp(join(tmpdir(), "postern-api-memory-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  await bundle("api-server", dir);
  const program = [join(dir, "main.mjs"), "api-server", "--host", "127.0.0.1", "--port", "0"];
  const { command, args } = bound.within(process.execPath, program);
  const server = await startProcess(command, args, {
    cwd: dir,
    readyLine: /"msg":"ready".*\n/,
    env: {
      ...{ NODE_ENV: "production", NODE_OPTIONS: undefined, NODE_COMPILE_CACHE: undefined },
      DATABASE_URL: system.databaseUrl,
      REDIS_URL: system.redisUrl,
      POSTERN_REDIS_PREFIX: system.prefix,
      POSTERN_ROOT_KEY: system.rootKey,
    },
  });
  onTestFinished(async () => void (await server.stop()));
  const ready =
    server
      .stderr()
      .split("\n")
      .find((line) => line.includes('"msg":"ready"')) ?? "{}";
  return {
    server,
    url: JSON.parse(ready).url,
    chargedMb: async () => (await bound.peakBytes()) / 1e6,
    limitMb: bytes / 1e6,
  };
}
