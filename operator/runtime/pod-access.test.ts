import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { podAccess } from "./pod-access.ts";

let mount: string;
beforeEach(async () => {
  mount = await mkdtemp(join(tmpdir(), "postern-mount-"));
  for (const [name, text] of Object.entries({ token: "one\n", "ca.crt": "ca\n", namespace: "postern" })) {
    await writeFile(join(mount, name), text);
  }
});
afterEach(() => rm(mount, { recursive: true }));

const env = { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" };

test("pod access uses the ServiceAccount token", async () => {
  const { access, namespace } = await podAccess(env, mount);
  expect(namespace).toBe("postern");
  expect(access.server).toBe("https://10.96.0.1:443");
  expect(await access.signIn()).toEqual({ headers: { authorization: "Bearer one" }, tls: { ca: "ca" } });
});

test("pod access puts an IPv6 address in brackets", async () => {
  const { access } = await podAccess({ ...env, KUBERNETES_SERVICE_HOST: "fd00::1" }, mount);
  expect(access.server).toBe("https://[fd00::1]:443");
});

test("pod access rereads a rejected ServiceAccount token", async () => {
  const { access } = await podAccess(env, mount);
  await access.signIn();
  await writeFile(join(mount, "token"), "two");
  expect((await access.signIn()).headers.authorization).toBe("Bearer one");
  access.forget();
  expect((await access.signIn()).headers.authorization).toBe("Bearer two");
});

test("pod access outside a pod fails with instructions", async () => {
  await expect(podAccess({}, mount)).rejects.toThrow(/set a kubeconfig file/);
});
