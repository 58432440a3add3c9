import { expect, test } from "vitest";
import { type Known, placementOf, UNSEEN } from "./placement.ts";
import { parseSettings } from "./settings.ts";

const LABELS: Readonly<Record<string, string | undefined>> = {
  shop: "team-shop",
  lab: undefined,
  lost: "team-without-a-key",
  odd: "",
  "bank-prod": "team-shop",
};
const aCluster = (more: Partial<Known> = {}): Known => ({
  settings: parseSettings("workspaces: [{ workspace: team-bank, namespaces: [bank, 'bank-*'] }]"),
  byDefault: undefined,
  labelOf: (namespace) => (namespace in LABELS ? LABELS[namespace] : UNSEEN),
  hasRootKey: (workspace) => ["team-shop", "team-bank", "shared"].includes(workspace),
  ...more,
});
const ignoringLabels = parseSettings("namespaceLabels: Ignore");

test.each<{ name: string; namespace: string; known?: Partial<Known>; workspace: string }>([
  { name: "the label of the Namespace names it", namespace: "shop", workspace: "team-shop" },
  { name: "the settings name it", namespace: "bank", workspace: "team-bank" },
  { name: "the settings stand above the label", namespace: "bank-prod", workspace: "team-bank" },
  { name: "without a label the default", namespace: "lab", known: { byDefault: "shared" }, workspace: "shared" },
  {
    name: "labels that are ignored: the default",
    namespace: "shop",
    known: { byDefault: "shared", settings: ignoringLabels },
    workspace: "shared",
  },
  {
    name: "labels that are ignored: the default also for a Namespace that was never seen",
    namespace: "unseen",
    known: { byDefault: "shared", settings: ignoringLabels },
    workspace: "shared",
  },
])("namespace is assigned to the expected workspace: $name", ({ namespace, known, workspace }) =>
  expect(placementOf(namespace, aCluster(known))).toEqual({ workspace }),
);

test.each<{ name: string; namespace: string; known?: Partial<Known>; reason: string; says: RegExp }>([
  { name: "without label and default", namespace: "lab", reason: "none", says: /label postern\.dev\/workspace/ },
  {
    name: "whose workspace has no root key",
    namespace: "lost",
    known: { byDefault: "shared" },
    reason: "none",
    says: /"team-without-a-key".*--root-keys-dir/,
  },
  {
    name: "with an empty label, which is no way to the default",
    namespace: "odd",
    known: { byDefault: "shared" },
    reason: "none",
    says: /""/,
  },
  {
    name: "that was not seen yet, although there is a default: it may have a label",
    namespace: "unseen",
    known: { byDefault: "shared" },
    reason: "unknown",
    says: /is not listed yet/,
  },
  {
    name: "when the default has no root key",
    namespace: "lab",
    known: { byDefault: "gone" },
    reason: "none",
    says: /"gone"/,
  },
])("namespace is assigned to no workspace: $name", ({ namespace, known, reason, says }) =>
  expect(placementOf(namespace, aCluster(known))).toEqual({ reason, message: expect.stringMatching(says) }),
);
