import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "../harness/ports.ts";
import { startProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";
import { openStore, toJson } from "./operator-world.ts";
import { openTeam } from "./teams.ts";

test("the root key in a file is followed: the former one is revoked, and the operator goes on without a restart", async () => {
  const store = await openStore();
  const dir = await mkdtemp(join(tmpdir(), "postern-root-key-"));
  const manifests = join(dir, "manifests");
  await mkdir(manifests);
  /** As kubelet mounts a Secret: each version has its folder, and one rename puts the next in its place. */
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
      ...["cli/main.ts", "operator", "--api-url", store.server.url, "--root-key-file", join(dir, "rootKey")],
      ...["--manifests", manifests, "--state", join(dir, "state"), "--admin-port", String(await freePort())],
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
    // Every key that the team had, the operator's too.
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
