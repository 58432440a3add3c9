import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { makeKey } from "../faults/client.ts";
import { openSystem, type System } from "../faults/system.ts";
import { PROGRAM } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";

/* A change by the command line, over the API or directly on the database, is enforced by running api-servers and gates. */

const ROOT = resolve(import.meta.dirname, "../..");
const exec = promisify(execFile);

/** Runs a command of space-separated words and returns its `--json` output. */
async function cli(system: System, args: string, api?: { readonly url: string }) {
  const connection = api === undefined ? {} : { POSTERN_API_URL: api.url, POSTERN_ROOT_KEY: system.rootKey };
  const { stdout, stderr } = await exec(process.execPath, [PROGRAM, ...args.split(" "), "--json"], {
    cwd: ROOT,
    env: { ...process.env, DATABASE_URL: system.databaseUrl, REDIS_URL: "", ...connection },
  });
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

const soon = { deadlineMs: 15_000, everyMs: 10 };

describe("a root key", () => {
  test("root key changes take effect soon after disabling, expiry, revocation or enabling", async () => {
    const system = await openSystem();
    const api = await system.api();
    const { rootKey, rootKeyId: id } = await cli(system, "rootkey create --permissions api.*.create_api");
    const becomes = (status: number) =>
      waitFor(
        `status ${status}`,
        async () => (await api.call("apis.createApi", { name: "mine" }, rootKey)).status === status,
        soon,
      );
    await becomes(200);
    await cli(system, `rootkey disable --id ${id}`, api);
    await becomes(401);
    await cli(system, `rootkey enable --id ${id}`, api);
    await becomes(200);
    await cli(system, `rootkey update --id ${id} --expires 2020-01-01`, api);
    await becomes(401);
    await cli(system, `rootkey update --id ${id} --expires never`, api);
    await becomes(200);
    await cli(system, `rootkey revoke --id ${id}`, api);
    await becomes(401);
  });
});

describe("a workspace", () => {
  test("workspace created at runtime works at the API and gates, and disabling it takes effect at both", async () => {
    const system = await openSystem();
    const api = await system.api();
    const { workspaceId } = await cli(system, "workspace create --name acme");
    const grants = "api.*.create_api,api.*.update_api,api.*.read_api,api.*.create_key,api.*.verify_key";
    const { rootKey } = await cli(system, `rootkey create --workspace acme --permissions ${grants}`);
    const { apiId } = await api.data("apis.createApi", { name: "acme" }, rootKey);
    const { key } = await api.data("keys.createKey", { apiId }, rootKey);
    const gate = await system.gate(api, { apiId, workspaceId, rootKey });
    const becomes = (central: number, atPod: number) =>
      waitFor(
        `${central} and ${atPod}`,
        async () =>
          (await api.call("keys.verifyKey", { key }, rootKey)).status === central && (await gate.status(key)) === atPod,
        soon,
      );
    await becomes(200, 200);
    await cli(system, "workspace disable --workspace acme");
    await becomes(403, 403);
    expect((await api.call("apis.createApi", { name: "untouched" })).status).toBe(200);
    await cli(system, "workspace enable --workspace acme");
    await becomes(200, 200);
  });

  test("workspace quota update takes effect", async () => {
    const system = await openSystem();
    const api = await system.api();
    const becomes = (status: number) =>
      waitFor(
        `status ${status}`,
        async () => (await api.call("apis.createApi", { name: "mine" })).status === status,
        soon,
      );
    await becomes(200);
    await cli(system, "workspace update --workspace default --per-minute 0");
    await becomes(429);
    await cli(system, "workspace update --workspace default --per-minute none");
    await becomes(200);
    await cli(system, "workspace update --workspace default --per-minute 1000000");
    await waitFor(
      "the headers of the quota",
      async () => {
        const response = await fetch(`${api.url}/v2/apis.createApi`, {
          method: "POST",
          headers: { authorization: `Bearer ${system.rootKey}`, "content-type": "application/json" },
          body: '{"name":"mine"}',
        });
        return response.headers.get("ratelimit-limit") === "1000000";
      },
      soon,
    );
  });
});

describe("an API", () => {
  test("IP allow-list of an API is enforced until it is removed", async () => {
    const system = await openSystem();
    const api = await system.api();
    const { apiId, key } = await makeKey(api);
    const becomes = (code: string) => waitFor(code, async () => (await api.code(key)) === code, soon);
    await becomes("VALID");
    await cli(system, `api update --id ${apiId} --ip-allow-list 10.1.2.3`);
    await becomes("FORBIDDEN");
    await cli(system, `api update --id ${apiId} --ip-allow-list 10.1.2.3,::ffff:127.0.0.0/104`);
    await becomes("VALID");
    await cli(system, `api update --id ${apiId} --ip-allow-list 10.1.2.3`);
    await becomes("FORBIDDEN");
    await cli(system, `api update --id ${apiId} --ip-allow-list none`);
    await becomes("VALID");
  });

  test("API defaults and delete protection apply from the next call on", async () => {
    const system = await openSystem();
    const api = await system.api();
    const { apiId } = await makeKey(api);
    await cli(system, `api update --id ${apiId} --default-prefix acme --default-byte-length 64 --delete-protection on`);
    const { key } = await api.data("keys.createKey", { apiId });
    expect(key).toMatch(/^acme_\w{86,88}$/);
    expect((await api.call("apis.deleteApi", { apiId })).status).toBe(412);
    await cli(system, `api update --id ${apiId} --delete-protection off`);
    expect((await api.call("apis.deleteApi", { apiId })).status).toBe(200);
  });
});

test("deleted rate limit namespace responds 410", async () => {
  const system = await openSystem();
  const api = await system.api();
  const limit = () => api.call("ratelimit.limit", { namespace: "logins", identifier: "a", limit: 1, duration: 60_000 });
  expect((await limit()).status).toBe(200);
  const { namespaces } = await cli(system, "namespace list", api);
  expect(namespaces).toMatchObject([{ name: "logins" }]);
  await cli(system, "namespace delete --namespace logins", api);
  await waitFor("410", async () => (await limit()).status === 410, soon);
});

test("failing command prints one error line and exits with its documented code", async () => {
  const system = await openSystem();
  const api = await system.api();
  const failed = (args: string) => cli(system, args, api).catch((error: unknown) => error);
  expect(await failed("rootkey revoke --id rk_never")).toMatchObject({
    code: 1,
    stdout: "",
    stderr: "postern rootkey revoke: There is no root key rk_never.\n",
  });
  expect(await failed("workspace update --workspace default --per-minute few")).toMatchObject({ code: 2, stdout: "" });
});
