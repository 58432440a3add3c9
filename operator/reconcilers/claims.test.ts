import { describe, expect, test } from "vitest";
import { KINDS, type Kind } from "../../core/manifests/index.ts";
import type { ManifestObject } from "../source/contract.ts";
import { createIndex } from "../source/indexed.ts";
import { anObject } from "../test/builders.ts";
import { claimOf, competitorConflict, competitorsOf, olderCompetitor } from "./claims.ts";
import { INDEXES } from "./indexes.ts";

describe("two objects claim one name", () => {
  const at = (name: string, creationTimestamp: string) => anObject("Role", {}, { name, creationTimestamp });
  // Uids and times sort differently.
  const old = at("b-old", "2026-01-01T00:00:00Z");
  const young = at("a-young", "2026-01-02T00:00:00Z");
  const twin = at("a-twin", "2026-01-01T00:00:00Z");

  test.each([
    { name: "an object without rivals has its claim", object: old, among: [old], competitor: undefined },
    { name: "the older one has it", object: old, among: [young, old], competitor: undefined },
    { name: "the younger one has not", object: young, among: [young, old], competitor: old },
    {
      name: "of two made at once the one with the smaller uid has it",
      object: old,
      among: [old, twin],
      competitor: twin,
    },
    { name: "and of two in the other order", object: old, among: [twin, old], competitor: twin },
    {
      name: "and keeps it whatever the order of the list",
      object: twin,
      among: [young, old, twin],
      competitor: undefined,
    },
  ])("competing claims of a name are decided by age: $name", ({ object, among, competitor }) =>
    expect(olderCompetitor(object, among)).toBe(competitor),
  );
});

const among = (objects: readonly ManifestObject[]) => {
  const index = createIndex(INDEXES);
  for (const after of objects) index.take({ kind: after.kind, after });
  return index;
};

/** For each kind: a spec, specs that claim the same name in another form, and specs that claim another name. */
const CLAIMS: Readonly<Record<Kind, { spec: object; same: readonly object[]; other: readonly object[] }>> = {
  Role: { spec: { name: "Großkunde" }, same: [{ name: "großkunde", permissions: 7 }], other: [{ name: "GROSSKUNDE" }] },
  RatelimitNamespace: {
    spec: { name: "Public" },
    same: [{ name: "Public", adopt: "no" }],
    other: [{ name: "public" }],
  },
  RatelimitOverride: {
    spec: { namespaceRef: { name: "public" }, identifier: "acme" },
    same: [{ namespaceRef: { name: "public", namespace: "shop" }, identifier: "acme", limit: -1 }],
    other: [
      { namespaceRef: { name: "public" }, identifier: "Acme" },
      { namespaceRef: { name: "private" }, identifier: "acme" },
      { namespaceRef: { name: "public", namespace: "bank" }, identifier: "acme" },
    ],
  },
  ApiKey: {
    spec: { secretRef: { name: "orders-key" } },
    same: [{ secretRef: { name: "orders-key", key: "other" }, owner: 7 }],
    other: [{ secretRef: { name: "orders-key-2" } }, { name: "orders-key" }],
  },
  ApiKeyPolicy: {
    spec: { api: { name: "orders" } },
    same: [{ api: { name: "orders" } }],
    other: [{ api: { name: "Orders" } }],
  },
};

describe.each(KINDS.map(({ kind }) => kind))("%s", (kind) => {
  const { spec, same, other } = CLAIMS[kind];
  const objects = [
    ...[spec, ...same].map((one) => ({ one, isCompetitor: true })),
    ...other.map((one) => ({ one, isCompetitor: false })),
  ];
  const world = objects.map(({ one }, index) => anObject(kind, one, { name: `object-${index}` }));

  test("objects that claim the same name are competitors, even if a spec is invalid", () => {
    const competitors = competitorsOf(world[0] as (typeof world)[0], among(world));
    expect(competitors).toEqual(world.filter((_, index) => objects[index]?.isCompetitor));
  });

  test.each([
    undefined,
    {},
    { namespaceRef: { name: "public" } },
    { identifier: "acme" },
    { name: "", identifier: "", api: {} },
    { name: 7, identifier: [], api: "orders" },
  ])("object with spec %o claims nothing and has no competitors", (empty) => {
    const nothing = anObject(kind, empty);
    expect(claimOf(nothing)).toBeUndefined();
    expect(competitorsOf(nothing, among([nothing, anObject(kind, empty, { name: "another" })]))).toEqual([]);
  });
});

test("policies may share an API name across Kubernetes namespaces, but roles may not", () => {
  const inTwo = (kind: Kind, spec: object) =>
    ["shop", "bank"].map((namespace) => claimOf(anObject(kind, spec, { namespace })));
  expect(new Set(inTwo("ApiKeyPolicy", { api: { name: "orders" } })).size).toBe(2);
  expect(new Set(inTwo("Role", { name: "editor" })).size).toBe(1);
});

test.each([
  { name: "an older one of its namespace", at: "shop", says: "older: Role shop/elder" },
  {
    name: "an older one of another namespace, which is not named",
    at: "bank",
    says: "older: A Role of another namespace",
  },
  { name: "none that is older", at: undefined, says: undefined },
])("conflict of an object with $name is reported as $says", ({ at, says }) => {
  const object = anObject("Role", { name: "editor" });
  const creationTimestamp = at === undefined ? "2027-01-01T00:00:00Z" : "2025-01-01T00:00:00Z";
  const other = anObject(
    "Role",
    { name: "editor" },
    { name: "elder", namespace: at ?? "bank", creationTimestamp, uid: "u" },
  );
  const verdict = competitorConflict(object, [object, other], (competitor) => `older: ${competitor}`);
  expect(verdict).toEqual(says && { state: "Stalled", reason: "Conflict", message: says });
});
