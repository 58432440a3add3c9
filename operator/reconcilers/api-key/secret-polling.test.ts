import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { waitFor } from "../../../test/harness/wait.ts";
import type { LeaderWork } from "../../runtime/leader.ts";
import type { FoundSecret, ManifestObject } from "../../source/contract.ts";
import { anObject } from "../../test/builders.ts";
import { isUnexpected, startSecretPolling } from "./secret-polling.ts";

const ready = [
  {
    type: "Ready",
    status: "True",
    reason: "Succeeded",
    message: "",
    lastTransitionTime: "2026-01-01T00:00:00Z",
    observedGeneration: 1,
  },
];
const aKey = (name: string, more: Parameters<typeof anObject>[2] = {}): ManifestObject =>
  anObject(
    "ApiKey",
    { secretRef: { name: `${name}-key` } },
    { name, status: { keyId: `key_${name}`, conditions: ready }, ...more },
  );
const ours = (keyId: string | undefined): FoundSecret => ({ state: "ours", keyId, version: "u/1" });

let policyCache: LeaderWork | undefined;
afterEach(() => policyCache?.close());

/** @param find Returns the Secret of the ApiKey with this name. */
function look(objects: readonly ManifestObject[], find: (name: string) => Promise<FoundSecret>) {
  const added: string[] = [];
  const looked: string[] = [];
  policyCache = startSecretPolling({
    source: {
      list: () => objects,
      get: (_, { name }) => objects.find(({ metadata }) => metadata.name === name),
      secrets: {
        find: async ({ metadata: { name } }: ManifestObject) => {
          looked.push(name);
          return await find(name);
        },
      } as unknown as Parameters<typeof startSecretPolling>[0]["source"]["secrets"],
    },
    add: ({ name }) => added.push(name),
    log: pino({ level: "silent" }),
    roundMs: 20,
    gapMs: 5,
  });
  return { added, looked, policyCache };
}

test.each([
  { name: "the key of the last look", found: ours("key_a"), is: false },
  { name: "another key", found: ours("key_b"), is: true },
  { name: "no key", found: ours(undefined), is: true },
  { name: "nothing", found: { state: "absent" } as const, is: true },
  { name: "another owner's", found: { state: "foreign" } as const, is: true },
  { name: "no right to look", found: { state: "refused", message: "no" } as const, is: true },
])("Secret poll treats a Secret with $name as unexpected ($is)", ({ found, is }) => {
  expect(isUnexpected(found, "key_a")).toBe(is);
});

test("first Secret poll accepts any key in a Secret that belongs to the object", () => {
  expect(isUnexpected(ours("key_a"), undefined)).toBe(false);
  expect(isUnexpected({ state: "absent" }, undefined)).toBe(true);
});

test("Secret polling by the leader covers only Secrets in use and continues after errors", async () => {
  const objects = [
    aKey("broken"),
    aKey("gone"),
    aKey("waits", { status: {} }),
    aKey("ends", { deletionTimestamp: "2026-01-02T00:00:00Z" }),
    aKey("kept"),
  ];
  const {
    added,
    looked,
    policyCache: running,
  } = look(objects, async (name) => {
    if (name === "broken") throw new Error("on purpose");
    return name === "gone" ? { state: "absent" } : ours(`key_${name}`);
  });
  expect(looked).toEqual([]);
  running.resume();
  await waitFor("two rounds", async () => looked.filter((name) => name === "kept").length >= 2);
  expect(new Set(looked)).toEqual(new Set(["broken", "gone", "kept"]));
  expect(new Set(added)).toEqual(new Set(["gone"]));
});
