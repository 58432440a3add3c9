import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import {
  conditionOf,
  openDirectoryWorld,
  operatorOf,
  statusIn,
  type TestManifest,
  untilDisconnected,
  untilReason,
} from "./operator-world.ts";

/* Cases of a directory source: invalid, duplicate or partially saved files, and changes while the operator was stopped. */

let world: Awaited<ReturnType<typeof openDirectoryWorld>>;
beforeAll(async () => {
  world = await openDirectoryWorld();
});
afterAll(() => world?.close());

const role = (name: string, permissions: string[] = ["a"]): TestManifest => ({
  kind: "Role",
  metadata: { name, namespace: "shop" },
  spec: { name, permissions },
});
const roleYaml = (name: string, permission = "a", namespace = "shop") => `apiVersion: postern.dev/v1alpha1
kind: Role
metadata: { name: ${name}, namespace: ${namespace} }
spec: { name: ${name}, permissions: [${permission}] }
`;
const write = (file: string, text: string) => writeFile(join(world.dir, file), text);
const permissionsOf = async (name: string): Promise<string[]> => {
  const { data } = await world.call("permissions.getRole", { role: name });
  return (data?.permissions ?? []).map(({ slug }: { slug: string }) => slug);
};
const untilPermission = (name: string, slug: string) =>
  waitFor(`${name} to have ${slug}`, async () => (await permissionsOf(name)).includes(slug));

test("invalid document is reported and its last version stays active; other documents are applied", async () => {
  await write("several.yaml", [roleYaml("good"), roleYaml("other")].join("---\n"));
  await untilReason(world, role("good"), "Succeeded");
  await untilReason(world, role("other"), "Succeeded");
  await write("several.yaml", [roleYaml("good", "b"), "kind: Role\nmetadata: [\n", roleYaml("third")].join("---\n"));
  await untilPermission("good", "b");
  await untilReason(world, role("third"), "Succeeded");
  expect(world.operator.problems()).toMatchObject([{ file: "several.yaml", document: 2, location: "yaml" }]);
  expect(await permissionsOf("other")).toEqual(["a"]);
  await write("several.yaml", [roleYaml("good", "b"), roleYaml("third")].join("---\n"));
  await untilDisconnected(world, role("other"));
  expect(world.operator.problems()).toEqual([]);
});

test("unknown fields and wrong types are rejected with locations, and the last version stays active", async () => {
  await write("typo.yaml", roleYaml("typo"));
  await untilReason(world, role("typo"), "Succeeded");
  await write("typo.yaml", `${roleYaml("typo").replace("permissions: [a]", "premissions: [b], description: 7")}`);
  await waitFor("the problems", () => world.operator.problems().length >= 2);
  expect(world.operator.problems()).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ object: "Role shop/typo", location: "spec.premissions" }),
      expect.objectContaining({ object: "Role shop/typo", location: "spec.description" }),
    ]),
  );
  expect(await permissionsOf("typo")).toEqual(["a"]);
  await rm(join(world.dir, "typo.yaml"));
  await untilDisconnected(world, role("typo"));
});

test("active document takes precedence over a duplicate", async () => {
  await write("m-first.yaml", roleYaml("double", "first"));
  await untilReason(world, role("double"), "Succeeded");
  await write("a-second.yaml", roleYaml("double", "second"));
  await waitFor("the problem", () => world.operator.problems().length === 1);
  expect(world.operator.problems()).toMatchObject([{ file: "a-second.yaml", object: "Role shop/double" }]);
  expect(await permissionsOf("double")).toEqual(["first"]);
  await rm(join(world.dir, "m-first.yaml"));
  await untilPermission("double", "second");
  await rm(join(world.dir, "a-second.yaml"));
  await untilDisconnected(world, role("double"));
});

test("replacing a file by deleting and creating it deletes no stored object", async () => {
  await write("saved.yaml", roleYaml("saved"));
  const { roleId } = await untilReason(world, role("saved"), "Succeeded");
  await writeFile(join(world.dir, ".saved.yaml.swp"), roleYaml("saved", "b"));
  await rm(join(world.dir, "saved.yaml"));
  await rename(join(world.dir, ".saved.yaml.swp"), join(world.dir, "saved.yaml"));
  await untilPermission("saved", "b");
  expect((await world.status(role("saved")))?.roleId).toBe(roleId);
});

test("edit of a manifest file is stored in less than a second", async () => {
  await write("quick.yaml", roleYaml("quick"));
  await untilReason(world, role("quick"), "Succeeded");
  const editedAt = performance.now();
  await write("quick.yaml", roleYaml("quick", "b"));
  await waitFor("the edit", async () => (await permissionsOf("quick")).includes("b"), { everyMs: 5 });
  expect(performance.now() - editedAt).toBeLessThan(500);
});

test("change that a cluster would reject is also rejected in files", async () => {
  const named = (name: string): TestManifest => ({
    kind: "RatelimitNamespace",
    metadata: { name: "fixed", namespace: "shop" },
    spec: { name },
  });
  await world.apply(named("fixed"));
  await untilReason(world, named("fixed"), "Succeeded");
  await world.apply(named("other"));
  const status = await untilReason(world, named("other"), "InvalidSpec");
  expect(conditionOf(status, "Stalled")?.message).toContain("cannot be renamed");
});

test("edited override identifier moves the override and deletes the old one", async () => {
  const namespace: TestManifest = {
    kind: "RatelimitNamespace",
    metadata: { name: "moving", namespace: "shop" },
    spec: { name: "moving" },
  };
  const override = (identifier: string): TestManifest => ({
    kind: "RatelimitOverride",
    metadata: { name: "moving", namespace: "shop" },
    spec: { namespaceRef: { name: "moving" }, identifier, limit: 1, duration: "60s" },
  });
  await world.apply(namespace);
  await world.apply(override("before"));
  await untilReason(world, override("before"), "Succeeded");
  await world.apply(override("after"));
  const find = (identifier: string) => world.call("ratelimit.getOverride", { namespace: "moving", identifier });
  await waitFor("the override to move", async () => (await find("after")).status === 200);
  expect(await find("before")).toMatchObject({ status: 404 });
  await world.remove(override("after"));
  await untilDisconnected(world, override("after"));
  expect(await find("after")).toMatchObject({ status: 404 });
});

test("manifest deleted while the operator was stopped is cleaned up at its start", async () => {
  const [dir, stateDir] = [join(world.dir, "..", "own"), join(world.dir, "..", "own-state")];
  await mkdir(dir);
  const source = { kind: "directory", dir, stateDir } as const;
  const before = await operatorOf(world, source, { cluster: "own" });
  try {
    await writeFile(join(dir, "a.yaml"), roleYaml("left"));
    await writeFile(join(dir, "b.yaml"), roleYaml("stays"));
    await untilReason(
      { status: async ({ kind, metadata }) => statusIn(before, kind, metadata) },
      role("left"),
      "Succeeded",
    );
    await untilReason(
      { status: async ({ kind, metadata }) => statusIn(before, kind, metadata) },
      role("stays"),
      "Succeeded",
    );
  } finally {
    await before.close();
  }
  const generation = before.statuses().find(({ name }) => name === "stays")?.generation;
  await rm(join(dir, "a.yaml"));
  const after = await operatorOf(world, source, { cluster: "own" });
  try {
    await waitFor(
      "the role to be gone",
      async () => (await world.call("permissions.getRole", { role: "left" })).status === 404,
    );
    // The role is deleted before the finalizer is removed.
    await waitFor("its object to be gone", () => after.statuses().length === 1);
    // An unchanged manifest keeps its object identity and generation.
    expect(after.statuses()).toMatchObject([{ name: "stays", generation }]);
    await waitFor(
      "the other to be Ready still",
      () => conditionOf(statusIn(after, "Role", { namespace: "shop", name: "stays" }), "Ready")?.status === "True",
    );
  } finally {
    await after.close();
  }
});

test("unreadable folder deletes nothing", async () => {
  const [dir, stateDir] = [join(world.dir, "..", "mounted"), join(world.dir, "..", "mounted-state")];
  await mkdir(dir);
  await writeFile(join(dir, "a.yaml"), roleYaml("mounted"));
  const operator = await operatorOf(world, { kind: "directory", dir, stateDir }, { cluster: "mounted" });
  try {
    await operator.ready();
    await rename(dir, `${dir}-away`);
    await writeFile(join(`${dir}-away`, "a.yaml"), roleYaml("mounted", "b"));
    await rename(`${dir}-away`, dir);
    // Events of the removed folder are lost, and the slow rescan finds the change.
    await untilPermission("mounted", "b");
    expect(operator.statuses()).toHaveLength(1);
  } finally {
    await operator.close();
  }
});
