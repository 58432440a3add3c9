import { describe, expect, test } from "vitest";
import { KINDS, type Kind } from "../../core/manifests/index.ts";
import type { ManifestObject } from "../source/contract.ts";
import { createIndex } from "../source/indexed.ts";
import { anObject } from "../test/builders.ts";
import { type ConflictTerms, claimOf, competitorsOf, conflictOf, olderCompetitor, reservedFor } from "./claims.ts";
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

describe("what an object claims", () => {
  interface Stored {
    readonly manager: string | undefined;
    readonly lastManager?: string;
  }
  const object = anObject("Role", { name: "editor" });
  const elder = anObject("Role", { name: "editor" }, { name: "elder", creationTimestamp: "2025-01-01T00:00:00Z" });
  const foreign = anObject(
    "Role",
    { name: "editor" },
    { namespace: "bank", creationTimestamp: "2025-01-01T00:00:00Z", uid: "u" },
  );
  const us = "test/Role/shop/it";
  const alone = { object, manager: us, claimants: [object], stored: undefined };
  const own: Stored = { manager: us };
  const others: Stored = { manager: "test/Role/bank/it" };
  const nobodys: Stored = { manager: undefined };
  const orphanedBy = (lastManager: string): Stored => ({ manager: undefined, lastManager });
  const terms = (adopt?: "Match" | "Override", differs?: string): ConflictTerms<Stored> => ({
    competitor: (competitor) => `older: ${competitor}`,
    managed: (_, manager) => `managed by ${manager}`,
    unmanaged: () => ({ adopt, unasked: "unasked", differs }),
  });

  test.each([
    { name: "is its own when nothing is there", claimed: alone },
    { name: "stays its own, however old another is", claimed: { ...alone, stored: own, claimants: [elder, object] } },
    { name: "is what it left itself, unasked", claimed: { ...alone, stored: orphanedBy(us) } },
    {
      name: "is not what it left itself while an older one has the claim",
      claimed: { ...alone, stored: orphanedBy(us), claimants: [elder, object] },
      says: "older: Role shop/elder",
    },
    {
      name: "is what one of its namespace left, when it adopts it",
      claimed: { ...alone, stored: orphanedBy("test/Role/shop/elder") },
      with: terms("Override"),
    },
    {
      name: "is not what one of its namespace left, unasked",
      claimed: { ...alone, stored: orphanedBy("test/Role/shop/elder") },
      says: "unasked",
    },
    ...["test/Role/bank/editor", "west/Role/shop/editor"].map((other) => ({
      name: `is not what ${other} left, however it adopts`,
      claimed: { ...alone, stored: orphanedBy(other) },
      with: terms("Override"),
      says: reservedFor({ lastManager: other }, us) ?? "",
    })),
    { name: "is an older one's", claimed: { ...alone, claimants: [object, elder] }, says: "older: Role shop/elder" },
    {
      name: "is an older one's of another namespace, which is not named",
      claimed: { ...alone, claimants: [object, foreign] },
      says: "older: A Role of another namespace",
    },
    {
      name: "is an older one's before it is said who manages it",
      claimed: { ...alone, stored: others, claimants: [elder, object] },
      says: "older: Role shop/elder",
    },
    {
      name: "is another manager's",
      claimed: { ...alone, stored: others },
      says: "managed by a Role of another namespace",
    },
    { name: "is not taken over unasked", claimed: { ...alone, stored: nobodys }, says: "unasked" },
    { name: "is taken over when it matches", claimed: { ...alone, stored: nobodys }, with: terms("Match") },
    {
      name: "is not taken over when it should match and does not",
      claimed: { ...alone, stored: nobodys },
      with: terms("Match", "differs"),
      says: "differs",
    },
    { name: "is taken over at any rate", claimed: { ...alone, stored: nobodys }, with: terms("Override", "differs") },
    {
      name: "is never taken from a manager",
      claimed: { ...alone, stored: others },
      with: terms("Override"),
      says: "managed by a Role of another namespace",
    },
    { name: "is taken over when its kind says nothing of it", claimed: { ...alone, stored: nobodys }, with: {} },
    {
      name: "is another manager's without harm, when its kind says nothing of it",
      claimed: { ...alone, stored: others },
      with: {},
    },
    {
      name: "is an older one's without harm, when its kind says nothing of it",
      claimed: { ...alone, claimants: [elder, object] },
      with: {},
    },
  ])(
    "claim of a name by an object is decided as expected: an object $name",
    ({ claimed, with: said = terms(), says }) => {
      const expected = says === undefined ? undefined : { state: "Stalled", reason: "Conflict", message: says };
      expect(conflictOf(claimed, said)).toEqual(expected);
    },
  );
});

test("unmanaged stored object is reserved for the namespace whose manifest released it", () => {
  const us = "test/ApiKey/shop/billing";
  const of = (lastManager: string | undefined) => reservedFor({ lastManager }, us);
  expect(of(undefined)).toBeUndefined();
  expect(of("test/ApiKeyPolicy/shop/orders")).toBeUndefined();
  expect(of("test/ApiKeyPolicy/bank/orders")).toContain("an ApiKeyPolicy of another namespace");
  expect(of("west/ApiKeyPolicy/shop/orders")).toContain("an ApiKeyPolicy of the cluster west");
});
