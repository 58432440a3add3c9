import { afterAll, beforeAll, expect, test } from "vitest";
import { findRootKey } from "../../api-server/db/root-keys.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import { OPERATOR_PERMISSIONS } from "../../core/permissions/operator.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  type TestKubernetes,
} from "../../test/harness/kubernetes.ts";
import { type Cli, openCli } from "../test/cli.ts";

let cli: Cli;
let cluster: TestKubernetes;
let namespace: string;
beforeAll(async () => {
  [cli, cluster] = await Promise.all([openCli(), startKubernetes()]);
  ({ name: namespace } = await createTestNamespace(cluster));
}, KUBERNETES_START_MS);
afterAll(() => cli.close());

const provision = (secret: string, more = "") =>
  cli.run(`provision --secret ${namespace}/${secret} --kubeconfig ${cluster.kubeconfigPath}${more}`);

async function createSecret(name: string, value?: string): Promise<void> {
  const literal = value === undefined ? [] : [`--from-literal=rootKey=${value}`];
  const args = ["create", "secret", "generic", name, "-n", namespace, "--from-literal=other=kept", ...literal];
  expect((await cluster.kubectl(args)).exitCode).toBe(0);
}

async function rootKeyIn(secret: string): Promise<string> {
  const { stdout } = await cluster.kubectl(["get", "secret", secret, "-n", namespace, "-o", "json"]);
  const { data } = JSON.parse(stdout) as { data: Record<string, string> };
  expect(Buffer.from(data.other ?? "", "base64").toString()).toBe("kept");
  return Buffer.from(data.rootKey ?? "", "base64").toString();
}

const rowOf = async (rootKey: string) => findRootKey(cli.db, { hash: hashKey(rootKey) });

test("provision stores a root key with the operator's permissions in an empty Secret, and a second run keeps it", async () => {
  await createSecret("empty");
  expect(await provision("empty")).toMatchObject({ code: 0, notes: ["created a root key for the operator"] });
  const rootKey = await rootKeyIn("empty");
  expect(await rowOf(rootKey)).toMatchObject({ permissions: OPERATOR_PERMISSIONS, enabled: true, expires_at: null });

  const again = await provision("empty");
  expect(again).toMatchObject({ code: 0, notes: ["the Secret already has a root key for the operator"] });
  expect(await rootKeyIn("empty")).toBe(rootKey);
  expect(JSON.stringify(again)).not.toContain(rootKey);
});

test("provision keeps a root key with wrong permissions, and corrects the permissions", async () => {
  const { rootKey } = await cli.json("rootkey create --permissions api.*.read_api,api.*.decrypt_key");
  await createSecret("lacking", rootKey);
  expect((await provision("lacking")).notes).toEqual(["the Secret already has a root key for the operator"]);
  expect(await rootKeyIn("lacking")).toBe(rootKey);
  expect((await rowOf(rootKey))?.permissions).toEqual(OPERATOR_PERMISSIONS);
  expect(JSON.stringify((await cli.audit())[0])).toContain("rbac.*.create_role");
});

test("provision replaces a root key that expires within an hour, and the old one works until then", async () => {
  const expires = new Date(Date.now() + 1_800_000).toISOString();
  const { rootKey } = await cli.json(`rootkey create --permissions api.*.read_api --expires ${expires}`);
  await createSecret("expiring", rootKey);
  expect((await provision("expiring")).notes).toEqual(["created a root key for the operator"]);
  expect(await rowOf(rootKey)).toMatchObject({ enabled: true, expires_at: Date.parse(expires) });
  expect((await rowOf(await rootKeyIn("expiring")))?.permissions).toEqual(OPERATOR_PERMISSIONS);
});

test("provision replaces a root key that is revoked or of another workspace", async () => {
  await cli.run("workspace create --name elsewhere");
  const other = await cli.json(`rootkey create --workspace elsewhere --permissions ${OPERATOR_PERMISSIONS.join(",")}`);
  await createSecret("foreign", other.rootKey);
  expect((await provision("foreign")).notes).toEqual(["created a root key for the operator"]);
  expect(await rowOf(other.rootKey)).toMatchObject({ enabled: true, expires_at: null });

  const made = await rootKeyIn("foreign");
  const { rowCount } = await cli.db.query("update root_keys set deleted_at = 1 where hash = $1", [hashKey(made)]);
  expect(rowCount).toBe(1);
  expect((await provision("foreign")).code).toBe(0);
  expect(await rootKeyIn("foreign")).not.toBe(made);
});

test("provision without the Secret creates no root key", async () => {
  const count = async () => (await cli.db.query("select id from root_keys")).rows.length;
  const before = await count();
  expect((await provision("nowhere")).notes.join()).toMatch(/^postern provision: 404 NotFound/);
  expect(await count()).toBe(before);
});

test("concurrent provisions leave one working root key", async () => {
  await createSecret("both");
  const ran = await Promise.all([provision("both"), provision("both")]);
  expect(ran.map(({ code }) => code)).toContain(0);
  const rootKey = await rootKeyIn("both");
  expect(await rowOf(rootKey)).toBeDefined();
  const live = (await cli.db.query("select id from root_keys where deleted_at is null and name = 'operator'")).rows;
  const kept = await Promise.all(["empty", "expiring", "foreign", "both"].map(rootKeyIn));
  expect(live).toHaveLength(kept.length);
});

test("provision waits for an unreachable database up to the given time", async () => {
  const startedAt = performance.now();
  const away = " --wait 2s --database-url postgres://nobody@127.0.0.1:1/none";
  expect((await provision("empty", away)).notes.join()).toContain("the database is unavailable");
  expect(performance.now() - startedAt).toBeGreaterThan(1000);
});
