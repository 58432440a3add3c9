import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PENDING_STATUS } from "../../core/manifests/conditions.ts";
import { API_VERSION } from "../../core/manifests/index.ts";
import { enforced } from "../../operator/reconcilers/api-key-policy/enforced.ts";
import { type FurtherCondition, progressing, ready, stalled, type Verdict } from "../../operator/reconcilers/plan.ts";
import { statusOf, withReconciling } from "../../operator/reconcilers/status.ts";
import type { ManifestObject } from "../../operator/source/contract.ts";
import { anObject } from "../../operator/test/builders.ts";
import { conditionOf, openKubernetesWorld, type TestManifest, untilReason } from "../e2e/operator-world.ts";

import { waitFor } from "../harness/wait.ts";
import { findChecker, judge } from "./judge.ts";

/* Flux and Argo CD see the same in every object, and what is true: judged by kstatus itself, and by our health.lua in Argo CD's Lua. */

const BUILD_MS = 1_200_000;
const NOW_MS = Date.parse("2026-03-01T12:00:00Z");

beforeAll(findChecker, BUILD_MS);

/** The object as a client reads it. */
const asRead = ({ kind, metadata, spec, status }: ManifestObject) => ({
  apiVersion: API_VERSION,
  kind,
  metadata,
  spec,
  status,
});
const told = (
  verdict: Verdict,
  { conditions = [], ...more }: { conditions?: FurtherCondition[]; status?: unknown } = {},
) => {
  const object = anObject("ApiKeyPolicy", {}, more);
  return { ...object, status: statusOf({ object, verdict, conditions, own: {}, nowMs: NOW_MS }).status };
};
const atGeneration = (generation: number, object: ManifestObject): ManifestObject => ({
  ...object,
  metadata: { ...object.metadata, generation },
});
const active = told(ready("The store has it."));
const away = progressing("ApiUnavailable", "The API cannot be reached.");
const unguarded = enforced(
  { pods: 1, updated: 1, maxStalenessMs: 0 },
  {
    selected: {
      own: [],
      gated: [],
      labelled: [],
      expected: [],
      guarded: 1,
      outdated: [],
      unguarded: ["a"],
      unlabelled: 0,
      isNamespaceGuarded: undefined,
      contested: 0,
      competitor: undefined,
    },
  },
);

describe("statuses in Flux and Argo CD", () => {
  const cases: { name: string; object: ManifestObject; kstatus: string; argocd: string; says: RegExp }[] = [
    {
      name: "no operator has seen it",
      object: anObject("Role", {}, { status: PENDING_STATUS }),
      kstatus: "InProgress",
      argocd: "Progressing",
      says: /Waiting for the operator/,
    },
    { name: "it is in force", object: active, kstatus: "Current", argocd: "Healthy", says: /The store has it/ },
    {
      name: "the spec has changed since",
      object: atGeneration(2, active),
      kstatus: "InProgress",
      argocd: "Progressing",
      says: /Waiting for the operator/,
    },
    {
      name: "it waits for another object",
      object: told(progressing("DependencyNotReady", "It waits for public-api.")),
      kstatus: "InProgress",
      argocd: "Progressing",
      says: /waits for public-api/,
    },
    {
      name: "a person has to act",
      object: told(stalled("Conflict", "Another object has it."), { status: active.status }),
      kstatus: "Failed",
      argocd: "Degraded",
      says: /Another object has it/,
    },
    {
      name: "a person has acted",
      object: atGeneration(2, told(stalled("Conflict", "Another object has it."))),
      // kstatus looks at the generation of the whole status first.
      kstatus: "InProgress",
      argocd: "Progressing",
      says: /Waiting for the operator/,
    },
    {
      name: "it is in force, and the API is away",
      object: { ...active, status: withReconciling(active, away, NOW_MS) },
      kstatus: "InProgress",
      argocd: "Progressing",
      says: /cannot be reached/,
    },
    {
      name: "it is in the store, and a pod has no gate",
      object: told(ready("The store has it."), { conditions: [unguarded] }),
      kstatus: "Current",
      argocd: "Healthy",
      says: /The store has it. Not enforced: 1 of the 2 running pods/,
    },
    {
      name: "it is in the store, and every pod enforces it",
      object: told(ready("The store has it."), { conditions: [enforced({ pods: 1, updated: 1, maxStalenessMs: 0 })] }),
      kstatus: "Current",
      argocd: "Healthy",
      says: /^The store has it.$/,
    },
  ];
  test.each(cases)(
    "Flux shows $kstatus and Argo CD shows $argocd when $name",
    async ({ object, kstatus, argocd, says }) => {
      const [verdict] = await judge([asRead(object)]);
      expect(verdict).toEqual({ kstatus, argocd: { status: argocd, message: expect.stringMatching(says) } });
    },
  );
});

describe("objects of a real cluster", () => {
  let world: Awaited<ReturnType<typeof openKubernetesWorld>>;
  beforeAll(async () => {
    world = await openKubernetesWorld();
  }, BUILD_MS);
  afterAll(() => world?.close());

  const aManifest = (kind: string, name: string, spec: Record<string, unknown>): TestManifest => ({
    kind,
    metadata: { name, namespace: world.namespace },
    spec,
  });
  const read = async (one: TestManifest): Promise<object> => {
    const found = await world.objects.get(one);
    if (found === undefined) throw new Error(`there is no ${one.kind} ${one.metadata.name}`);
    return found;
  };
  const judged = async (one: TestManifest) => {
    const [verdict] = await judge([await read(one)]);
    return `${verdict?.kstatus}, ${verdict?.argocd.status}`;
  };
  const policy = (name: string, spec: object = {}) =>
    aManifest("ApiKeyPolicy", name, { api: { name: `${name}-api` }, target: { port: "http" }, ...spec });

  test("objects of each kind have the expected health in Flux: Healthy, Progressing or Degraded", async () => {
    const good = [
      aManifest("Role", "good", { name: "good" }),
      aManifest("RatelimitNamespace", "good", { name: "good" }),
      aManifest("RatelimitOverride", "good", {
        namespaceRef: { name: "good" },
        identifier: "acme",
        limit: 1,
        duration: "1m",
      }),
      policy("good"),
    ];
    const waits = aManifest("RatelimitOverride", "waits", {
      namespaceRef: { name: "missing" },
      identifier: "acme",
      limit: 1,
      duration: "1m",
    });
    const bad = policy("bad", { rules: [{ permissions: "a AND" }] });
    for (const one of [...good, waits, bad]) await world.apply(one);
    for (const one of good) await untilReason(world, one, "Succeeded");
    await untilReason(world, waits, "DependencyNotReady");
    await untilReason(world, bad, "PermissionQueryInvalid");
    expect(await Promise.all(good.map(judged))).toEqual(good.map(() => "Current, Healthy"));
    expect(await judged(waits)).toBe("InProgress, Progressing");
    expect(await judged(bad)).toBe("Failed, Degraded");

    await world.apply(aManifest("RatelimitNamespace", "missing", { name: "missing" }));
    await untilReason(world, waits, "Succeeded");
    expect(await judged(waits)).toBe("Current, Healthy");
  });

  test("objects with a pending deletion are Terminating in Flux", async () => {
    const kept = policy("kept", { deletionPolicy: "Delete" });
    await world.apply(kept);
    const { apiId } = await untilReason(world, kept, "Succeeded");
    expect((await world.call("keys.createKey", { apiId })).status).toBe(200);
    await world.remove(kept);
    await waitFor("the deletion to be refused", async () => {
      return conditionOf(await world.status(kept), "Ready")?.reason === "HasKeys";
    });
    // Argo CD itself shows what is being deleted as Progressing, and does not ask the script.
    expect(await judged(kept)).toBe("Terminating, Degraded");
  });
});
