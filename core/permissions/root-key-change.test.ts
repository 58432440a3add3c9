import { describe, expect, test } from "vitest";
import { addedPermissions, type RootKeyAuthority, reducesAuthority } from "./root-key-change.ts";

const aKey = (of: Partial<RootKeyAuthority> = {}): RootKeyAuthority => ({
  permissions: ["api.*.read_api", "api.api_1.read_key"],
  enabled: true,
  expiresAt: 1000,
  ...of,
});
const all = aKey().permissions;

describe("a change", () => {
  test.each([
    { name: "of nothing", after: {}, gives: [], takes: false },
    { name: "that adds a tuple", after: { permissions: [...all, "rbac.*.read_role"] }, gives: ["rbac.*.read_role"] },
    { name: "that narrows * to an id", after: { permissions: ["api.api_2.read_api", ...all.slice(1)] }, takes: true },
    { name: "that takes a tuple", after: { permissions: all.slice(1) }, takes: true },
    { name: "that widens an id to *", after: { permissions: ["api.*.read_key", ...all] }, gives: ["api.*.read_key"] },
    { name: "that disables", after: { enabled: false }, takes: true },
    { name: "that enables", before: { enabled: false }, gives: all },
    { name: "that ends later", after: { expiresAt: 1001 }, gives: all },
    { name: "that ends sooner", after: { expiresAt: 999 }, takes: true },
    { name: "that never ends", after: { expiresAt: null }, gives: all },
    { name: "that ends at all", before: { expiresAt: null }, takes: true },
    { name: "of what stays disabled", before: { enabled: false }, after: { enabled: false } },
    { name: "that enables with less", before: { enabled: false }, after: { permissions: [] }, gives: [], takes: true },
  ] as const)(
    "change of a root key is classified by the permissions that it grants: a change $name",
    ({ before = {}, after = {}, gives = [], takes = false }: Case) => {
      const [one, other] = [aKey(before), aKey({ ...after })];
      expect(addedPermissions(one, other)).toEqual(gives);
      expect(reducesAuthority(one, other)).toBe(takes);
    },
  );
});

interface Case {
  readonly before?: Partial<RootKeyAuthority>;
  readonly after?: Partial<RootKeyAuthority>;
  readonly gives?: readonly string[];
  readonly takes?: boolean;
}
