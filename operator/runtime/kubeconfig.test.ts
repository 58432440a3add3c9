import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { stringify } from "yaml";
import { readKubeconfig } from "./kubeconfig.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "postern-kubeconfig-"));
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(dir, { recursive: true });
});

const base64 = (text: string) => Buffer.from(text).toString("base64");

interface Deps {
  readonly user?: object | null;
  readonly cluster?: object;
  readonly context?: object;
}

/** Writes a kubeconfig with two contexts; the second is the current one. */
async function kubeconfig({ user = {}, cluster = {}, context = {} }: Deps): Promise<string> {
  const path = join(dir, "config");
  const other = { server: "https://other:6443", "certificate-authority-data": base64("other") };
  await writeFile(
    path,
    stringify({
      apiVersion: "v1",
      kind: "Config",
      preferences: {},
      "current-context": "here",
      clusters: [
        { name: "other", cluster: other },
        { name: "c", cluster: { server: "https://api:6443/", ...cluster } },
      ],
      users: [
        { name: "other", user: { token: "other" } },
        { name: "u", user },
      ],
      contexts: [
        { name: "there", context: { cluster: "other", user: "other", namespace: "there" } },
        { name: "here", context: { cluster: "c", user: "u", ...context } },
      ],
    }),
  );
  return path;
}

const open = async (deps: Deps) => await readKubeconfig(await kubeconfig(deps), { PATH: "/bin:/usr/bin" });
const signedIn = async (deps: Deps) => await (await open(deps)).access.signIn();

test("kubeconfig current context selects cluster, user and namespace", async () => {
  const path = await kubeconfig({
    user: { token: "t" },
    cluster: {
      "certificate-authority-data": base64("ca"),
      "proxy-url": "http://proxy:3128",
      "tls-server-name": "kube",
    },
    context: { namespace: "shop" },
  });
  const { access, namespace } = await readKubeconfig(path, {});
  expect(namespace).toBe("shop");
  expect(access).toMatchObject({ server: "https://api:6443", proxyUrl: "http://proxy:3128" });
  expect(await access.signIn()).toMatchObject({
    headers: { authorization: "Bearer t" },
    tls: { ca: "ca", servername: "kube" },
  });
});

test("kubeconfig without a namespace uses `default`, and one without a user provides no credentials", async () => {
  const { access, namespace } = await open({ user: null });
  expect(namespace).toBe("default");
  expect((await access.signIn()).headers).toEqual({});
});

test("kubeconfig certificates and tokens are read from relative paths, but inline data takes precedence", async () => {
  for (const name of ["ca.pem", "cert.pem", "key.pem"]) await writeFile(join(dir, name), `file ${name}`);
  await writeFile(join(dir, "token"), "from the file\n");
  const user = { "client-certificate": "cert.pem", "client-key": "key.pem", token: "t", tokenFile: "token" };
  const fromFiles = await signedIn({ user, cluster: { "certificate-authority": "ca.pem" } });
  expect(fromFiles.tls).toMatchObject({ ca: "file ca.pem", cert: "file cert.pem", key: "file key.pem" });
  expect(fromFiles.headers).toEqual({ authorization: "Bearer from the file" });
  const asText = await signedIn({
    user: { ...user, "client-certificate-data": base64("cert"), "client-key-data": base64("key") },
  });
  expect(asText.tls).toMatchObject({ cert: "cert", key: "key" });
});

test("kubeconfig sends username and password as Basic authentication and impersonates users", async () => {
  const { headers } = await signedIn({ user: { username: "ada", password: "s3:cret", as: "bob" } });
  expect(headers).toEqual({ authorization: `Basic ${base64("ada:s3:cret")}`, "impersonate-user": "bob" });
});

test("kubeconfig verifies the server certificate unless disabled", async () => {
  expect((await signedIn({})).tls.rejectUnauthorized).toBeUndefined();
  expect((await signedIn({ cluster: { "insecure-skip-tls-verify": true } })).tls.rejectUnauthorized).toBe(false);
});

test("kubeconfig files are reread after a minute or a rejection", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const token = join(dir, "token");
  await writeFile(token, "one");
  const { access } = await open({ user: { tokenFile: "token" } });
  const sent = async () => (await access.signIn()).headers.authorization;
  expect(await sent()).toBe("Bearer one");
  await writeFile(token, "two");
  vi.setSystemTime(Date.now() + 59_000);
  expect(await sent()).toBe("Bearer one");
  vi.setSystemTime(Date.now() + 1_000);
  expect(await sent()).toBe("Bearer two");
  await writeFile(token, "three");
  access.forget();
  expect(await sent()).toBe("Bearer three");
});

/** Returns an exec plugin that counts its runs in a file and prints `status` with the run number. */
async function plugin(status: string): Promise<object> {
  const path = join(dir, "plugin");
  await writeFile(path, `#!/bin/sh\necho x >> ${dir}/runs\nn=$(wc -l < ${dir}/runs)\n${status}\n`);
  await chmod(path, 0o755);
  return {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "./plugin",
    args: ["a b"],
    env: [{ name: "ZONE", value: "z" }],
  };
}
const printed = (status: string) => `printf '{"kind":"ExecCredential","status":${status}}' $n`;

test("exec plugin credential is used until shortly before it expires", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  vi.setSystemTime(Date.parse("2026-01-01T00:00:00Z"));
  const status =
    '{"token":"t%d","clientCertificateData":"cert","clientKeyData":"key","expirationTimestamp":"2026-01-01T01:00:00Z"}';
  const { access } = await open({ user: { exec: await plugin(printed(status)) } });
  const [first, second] = await Promise.all([access.signIn(), access.signIn()]);
  expect(first).toEqual(second);
  expect(first).toMatchObject({ headers: { authorization: "Bearer t1" }, tls: { cert: "cert", key: "key" } });
  vi.setSystemTime(Date.parse("2026-01-01T00:59:00Z"));
  expect((await access.signIn()).headers.authorization).toBe("Bearer t1");
  vi.setSystemTime(Date.parse("2026-01-01T00:59:45Z"));
  expect((await access.signIn()).headers.authorization).toBe("Bearer t2");
});

test("exec plugin credential without expiry is used until the server rejects it", async () => {
  const { access } = await open({ user: { exec: await plugin(printed('{"token":"t%d"}')) } });
  await access.signIn();
  expect((await access.signIn()).headers.authorization).toBe("Bearer t1");
  access.forget();
  expect((await access.signIn()).headers.authorization).toBe("Bearer t2");
});

test("exec plugin receives its arguments, environment and ExecCredential request", async () => {
  const exec = await plugin(
    `printf '%s|%s|%s' "$1" "$ZONE" "$KUBERNETES_EXEC_INFO" > ${dir}/given\n${printed('{"token":"t"}')}`,
  );
  await signedIn({ user: { exec } });
  const { readFile } = await import("node:fs/promises");
  const [argument, zone, info = ""] = (await readFile(join(dir, "given"), "utf8")).split("|");
  expect([argument, zone]).toEqual(["a b", "z"]);
  expect(JSON.parse(info)).toEqual({
    apiVersion: "client.authentication.k8s.io/v1",
    kind: "ExecCredential",
    spec: { interactive: false },
  });
});

test.each([
  { name: "fails", status: "echo 'log in first' >&2; exit 3", says: /plugin .* failed \(3\): log in first/ },
  { name: "prints something else", status: "echo secret", says: /printed no ExecCredential/ },
])("exec plugin that $name is named in the error without its output", async ({ status, says }) => {
  const failing = signedIn({ user: { exec: await plugin(status) } });
  await expect(failing).rejects.toThrow(says);
  await expect(failing).rejects.not.toThrow(/secret/);
});

test("error for a missing exec plugin contains the install hint", async () => {
  const exec = { apiVersion: "v1", command: "no-such-plugin-here", installHint: "Install it from the cloud." };
  await expect(signedIn({ user: { exec } })).rejects.toThrow(/ENOENT.*Install it from the cloud/);
});

test.each([
  { name: "an auth-provider", parts: { user: { "auth-provider": { name: "gcp" } } }, says: /use an exec plugin/ },
  { name: "a cluster without a server", parts: { cluster: { server: null } }, says: /server/ },
  { name: "a context whose user is missing", parts: { context: { user: "gone" } }, says: /no user named gone/ },
])("kubeconfig with $name is rejected with a reason", async ({ parts: deps, says }) => {
  await expect(open(deps)).rejects.toThrow(says);
});
