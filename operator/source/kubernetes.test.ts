import { expect, test } from "vitest";
import { trimObject } from "./kubernetes.ts";

test("Kubernetes source drops annotations and labels to bound memory", () => {
  const kept = {
    name: "orders",
    namespace: "shop",
    uid: "uid-1",
    resourceVersion: "7",
    generation: 3,
    creationTimestamp: "2026-01-01T00:00:00Z",
    deletionTimestamp: "2026-01-02T00:00:00Z",
    finalizers: ["postern.dev/store", "of.others/one"],
  };
  const [spec, status] = [{ rules: [] }, { apiId: "api_1" }];
  const object = {
    apiVersion: "postern.dev/v1alpha1",
    kind: "ApiKeyPolicy",
    metadata: {
      ...kept,
      labels: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`label-${i}`, "x"])),
      annotations: { "postern.dev/abandon": "true", large: "x".repeat(250_000) },
      managedFields: [{ manager: "kubectl", fieldsV1: { large: "x".repeat(100_000) } }],
    },
    spec,
    status,
  };
  const trimmed = trimObject(object);
  expect(trimmed).toEqual({ metadata: { ...kept, annotations: { "postern.dev/abandon": "true" } }, spec, status });
  expect(trimObject(trimmed)).toEqual(trimmed);
});
