import { describe, expect, test } from "vitest";
import { KINDS, type Kind } from "../../core/manifests/index.ts";
import type { ManifestChange, ManifestObject } from "../source/contract.ts";
import { createIndex } from "../source/indexed.ts";
import { anObject } from "../test/builders.ts";
import { INDEXES } from "./indexes.ts";
import { RECONCILERS } from "./registry.ts";

test("every manifest kind has a reconciler", () => {
  expect(RECONCILERS.map(({ kind }) => kind).sort()).toEqual(KINDS.map(({ kind }) => kind).sort());
});

describe("which objects a change affects", () => {
  const of = (kind: Kind, name: string, spec: object, namespace = "shop") => anObject(kind, spec, { name, namespace });
  const limiting = (name: string) => [{ ratelimits: [{ namespace: name, limit: 1, duration: "1s" }] }];

  const world: readonly ManifestObject[] = [
    of("Role", "editor", { name: "editor" }),
    of("Role", "shouting", { name: "EDITOR" }, "bank"),
    of("Role", "reader", { name: "reader" }),
    of("RatelimitNamespace", "public", { name: "public-api" }),
    of("RatelimitNamespace", "twin", { name: "public-api" }, "bank"),
    of("RatelimitOverride", "acme", { namespaceRef: { name: "public" }, identifier: "acme" }),
    of(
      "RatelimitOverride",
      "acme",
      { namespaceRef: { name: "public", namespace: "shop" }, identifier: "acme" },
      "bank",
    ),
    of("RatelimitOverride", "other", { namespaceRef: { name: "private" }, identifier: "acme" }),
    of("ApiKeyPolicy", "orders", { api: { name: "orders" }, rules: limiting("public-api") }),
    of("ApiKeyPolicy", "again", { api: { name: "orders" } }),
    of("ApiKeyPolicy", "elsewhere", { api: { name: "orders" } }, "bank"),
    of("ApiKeyPolicy", "guest", { api: { id: "api_12345678" } }, "bank"),
  ];
  const source = createIndex(INDEXES);
  for (const after of world) source.take({ kind: after.kind, after });

  const concerned = (change: ManifestChange): string[] =>
    RECONCILERS.flatMap(({ kind, concernedBy }) =>
      concernedBy(change, source).map(({ namespace, name }) => `${kind} ${namespace}/${name}`),
    ).sort();

  test.each<{ name: string; change: ManifestChange; objects: string[] }>([
    {
      name: "a role that goes: those that claimed its name, however it is written",
      change: { kind: "Role", before: of("Role", "gone", { name: "Editor" }) },
      objects: ["Role bank/shouting", "Role shop/editor"],
    },
    {
      name: "a role that is renamed: those of its old name and of its new one",
      change: {
        kind: "Role",
        before: of("Role", "it", { name: "reader" }),
        after: anObject("Role", { name: "editor" }, { name: "it", generation: 2 }),
      },
      objects: ["Role bank/shouting", "Role shop/editor", "Role shop/reader"],
    },
    {
      name: "a namespace: its rivals, the overrides that refer to it, and the policies that limit in it",
      change: { kind: "RatelimitNamespace", after: of("RatelimitNamespace", "public", { name: "public-api" }) },
      objects: [
        "ApiKeyPolicy shop/orders",
        "RatelimitNamespace bank/twin",
        "RatelimitNamespace shop/public",
        "RatelimitOverride bank/acme",
        "RatelimitOverride shop/acme",
      ],
    },
    {
      name: "an override: those for the same identifier of the same namespace",
      change: {
        kind: "RatelimitOverride",
        before: of("RatelimitOverride", "gone", { namespaceRef: { name: "public" }, identifier: "acme" }),
      },
      objects: ["RatelimitOverride bank/acme", "RatelimitOverride shop/acme"],
    },
    {
      name: "a policy: those of its Kubernetes namespace that make an API of its name",
      change: { kind: "ApiKeyPolicy", after: of("ApiKeyPolicy", "new", { api: { name: "orders" } }) },
      objects: ["ApiKeyPolicy shop/again", "ApiKeyPolicy shop/orders"],
    },
    {
      name: "a policy that allows other namespaces: those that name an API by its id, too",
      change: {
        kind: "ApiKeyPolicy",
        before: of("ApiKeyPolicy", "maker", { api: { name: "mine" } }),
        after: of("ApiKeyPolicy", "maker", { api: { name: "mine" }, allowedNamespaces: ["bank"] }),
      },
      objects: ["ApiKeyPolicy bank/guest"],
    },
    {
      name: "a role of which only the status changed: none, whatever claims its name",
      change: {
        kind: "Role",
        before: of("Role", "it", { name: "editor" }),
        after: anObject("Role", { name: "editor" }, { name: "it", status: { roleId: "role_1" } }),
      },
      objects: [],
    },
    {
      name: "an object that claims nothing: none",
      change: { kind: "Role", before: of("Role", "broken", {}), after: of("Role", "broken", { name: "" }) },
      objects: [],
    },
  ])("change of an object triggers a reconcile of the affected objects: $name", ({ change, objects }) =>
    expect(concerned(change)).toEqual(objects),
  );
});
