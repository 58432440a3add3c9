import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { freePort } from "../harness/ports.ts";
import { PROGRAM, startProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";
import { openStore, toJson } from "./operator-world.ts";
import { openTeam } from "./teams.ts";

test("operator uses a rotated root key file without a restart", async () => {
  const store = await openStore();
  const dir = await mkdtemp(join(tmpdir(), "postern-root-key-"));
  const manifests = join(dir, "manifests");
  await mkdir(manifests);
  /** Mounts a Secret as kubelet does: each version has a folder, and a rename activates the next. */
  const mount = async (version: string, rootKey: string) => {
    await mkdir(join(dir, version));
    await writeFile(join(dir, version, "rootKey"), `${rootKey}\n`);
    await symlink(version, join(dir, "..data_tmp"));
    await rename(join(dir, "..data_tmp"), join(dir, "..data"));
  };
  const team = await openTeam(store, "followed");
  await mount("..1", team.operatorKey);
  await symlink(join("..data", "rootKey"), join(dir, "rootKey"));
  const apply = (description: string) =>
    writeFile(
      join(manifests, "role.yaml"),
      toJson({
        kind: "Role",
        metadata: { name: "it", namespace: "shop" },
        spec: { name: "editor", description, permissions: ["orders.read"] },
      }),
    );
  await apply("first");
  const operator = await startProcess(
    process.execPath,
    [
      ...[PROGRAM, "operator", "--api-url", store.server.url, "--root-key-file", join(dir, "rootKey")],
      ...["--manifests", manifests, "--state-dir", join(dir, "state"), "--admin-port", String(await freePort())],
    ],
    { env: {}, readyLine: /watching/ },
  );
  try {
    let rootKey = team.rootKey;
    const untilSaid = (description: string) =>
      waitFor(
        `the role to be the ${description}`,
        async () =>
          (await team.call("permissions.getRole", { role: "editor" }, rootKey)).data?.description === description,
        { deadlineMs: 60_000 },
      );
    await untilSaid("first");
    // Disables all keys of the team, including the operator's.
    await team.disableKeys();
    rootKey = await team.anotherKey();
    await mount("..2", rootKey);
    await apply("second");
    await untilSaid("second");
    expect(operator.stderr()).toContain("--root-key-file has changed");
    expect(operator.stderr()).not.toContain(rootKey);
  } finally {
    await operator.stop();
    await store.close();
    await rm(dir, { recursive: true, force: true });
  }
});

test("rejected root key makes operator and objects unready with advice, and does not flood the log", async () => {
  const store = await openStore();
  const dir = await mkdtemp(join(tmpdir(), "postern-refused-key-"));
  const manifests = join(dir, "manifests");
  await mkdir(manifests);
  const names = Array.from({ length: 20 }, (_, i) => `role-${i}`);
  for (const name of names) {
    const spec = { name, permissions: ["orders.read"] };
    await writeFile(
      join(manifests, `${name}.yaml`),
      toJson({ kind: "Role", metadata: { name, namespace: "shop" }, spec }),
    );
  }
  const team = await openTeam(store, "refused");
  const keyFile = join(dir, "rootKey");
  const port = await freePort();
  const start = () =>
    startProcess(
      process.execPath,
      [
        ...[PROGRAM, "operator", "--api-url", store.server.url, "--root-key-file", keyFile],
        ...["--manifests", manifests, "--state-dir", join(dir, "state"), "--admin-port", String(port)],
      ],
      { env: {}, readyLine: /watching/ },
    );
  const readyz = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`);
    return `${response.status} ${await response.text()}`;
  };
  const readyOf = async () => {
    const files = await readdir(join(dir, "state"), { recursive: true });
    const text = (
      await Promise.all(
        files
          .filter((one) => one.endsWith(".yaml") || one.endsWith(".json"))
          .map((one) => readFile(join(dir, "state", one), "utf8")),
      )
    ).join("\n");
    return text;
  };
  // The key worked before, so the objects were Ready.
  await writeFile(keyFile, team.operatorKey);
  const before = await start();
  await waitFor("ready", async () => (await readyz()).startsWith("200"), { deadlineMs: 60_000 });
  await waitFor("the objects to be Ready", async () => /stored as/.test(await readyOf()), { deadlineMs: 60_000 });
  await before.stop();

  await writeFile(keyFile, "root_of_no_workspace_0123456789");
  const operator = await start();
  try {
    await waitFor("it to be unready", async () => (await readyz()).startsWith("503"), { deadlineMs: 60_000 });
    expect(await readyz()).toMatch(/rejects the operator's root key, which is not valid \(401.*postern provision/);
    await waitFor(
      "all objects to say so",
      async () => {
        const text = await readyOf();
        return !/stored as/.test(text) && (text.match(/rejects the operator's root key/g) ?? []).length >= names.length;
      },
      { deadlineMs: 60_000 },
    );
    await sleep(8_000);
    // 20 objects fail repeatedly.
    expect(operator.stderr().length).toBeLessThan(8_000);
    expect(operator.stderr()).toContain("rejects the operator's root key");
    expect(operator.stderr()).not.toContain("root_of_no_workspace");
    await writeFile(`${keyFile}.next`, team.operatorKey);
    await rename(`${keyFile}.next`, keyFile);
    await waitFor("it to be ready", async () => (await readyz()).startsWith("200"), { deadlineMs: 90_000 });
  } finally {
    await operator.stop();
    await store.close();
    await rm(dir, { recursive: true, force: true });
  }
}, 240_000);

test("rejected root key is reported even without objects until it is replaced", async () => {
  const store = await openStore();
  const dir = await mkdtemp(join(tmpdir(), "postern-refused-alone-"));
  await mkdir(join(dir, "manifests"));
  const team = await openTeam(store, "alone");
  const [keyFile, port] = [join(dir, "rootKey"), await freePort()];
  await writeFile(keyFile, "root_of_no_workspace_0123456789");
  const operator = await startProcess(
    process.execPath,
    [
      ...[PROGRAM, "operator", "--api-url", store.server.url, "--root-key-file", keyFile],
      ...["--manifests", join(dir, "manifests"), "--state-dir", join(dir, "state"), "--admin-port", String(port)],
    ],
    { env: {}, readyLine: /watching/ },
  );
  const readyz = async () => await (await fetch(`http://127.0.0.1:${port}/readyz`)).text();
  try {
    await waitFor("it to be unready", async () => (await readyz()).includes("rejects the operator's root key"));
    await writeFile(`${keyFile}.next`, team.operatorKey);
    await rename(`${keyFile}.next`, keyFile);
    await waitFor("it to be ready", async () => (await readyz()) === "ok\n", { deadlineMs: 60_000 });
  } finally {
    await operator.stop();
    await store.close();
    await rm(dir, { recursive: true, force: true });
  }
}, 120_000);
