import { describe, expect, test } from "vitest";
import { DAY_MS, utcDate } from "../utc-date.ts";
import { findingsOf, lastUseOf, type NoticedRootKey, narrowedPermissions } from "./root-key-findings.ts";

const NOW = Date.UTC(2026, 10, 22, 13, 0, 0);
const ago = (days: number): number => NOW - days * DAY_MS;
const use = (tuple: string, days = 0, onlyId: string | null = null) => ({
  tuple,
  lastUsedOn: utcDate(ago(days)),
  onlyId,
});

/** Returns a root key that is 40 days old and used all of its permissions today. */
const aKey = (of: Partial<NoticedRootKey> = {}): NoticedRootKey => ({
  createdAt: ago(40),
  enabled: true,
  expiresAt: null,
  permissions: ["api.*.read_key"],
  permissionsSince: of.createdAt ?? ago(40),
  hasSuccessor: false,
  uses: [use(""), use("api.*.read_key")],
  usesSince: ago(400),
  ...of,
});
const kinds = (key: NoticedRootKey): string[] => findingsOf(key, NOW).map(({ kind }) => kind);

describe("findings", () => {
  test.each([
    { name: "nothing of one in use", key: {}, says: [] },
    { name: "90 days are not old", key: { createdAt: ago(90) }, says: [] },
    { name: "more than 90 days are", key: { createdAt: ago(90) - 1 }, says: ["old"] },
    { name: "one with a successor is leaving already", key: { createdAt: ago(91), hasSuccessor: true }, says: [] },
    { name: "never used, a week old", key: { createdAt: ago(7), uses: [] }, says: ["never_used"] },
    { name: "never used, but new", key: { createdAt: ago(7) + 1, uses: [] }, says: [] },
    { name: "never used, but uses are noted since yesterday", key: { usesSince: ago(1), uses: [] }, says: [] },
    { name: "called without any permission is used", key: { createdAt: ago(8), uses: [use("")] }, says: [] },
    { name: "expired", key: { expiresAt: NOW - 1 }, says: ["expired"] },
    { name: "lives in the millisecond of its expiry", key: { expiresAt: NOW }, says: ["expiring"] },
    { name: "expires within 14 days", key: { expiresAt: ago(-14) - 1 }, says: ["expiring"] },
    { name: "expires in 14 days", key: { expiresAt: ago(-14) }, says: [] },
  ])("root key has the expected findings: $name", ({ key, says }) => expect(kinds(aKey(key))).toEqual(says));

  const twice = ["api.*.read_key", "api.*.create_key"];
  test.each([
    { name: "not for 30 days", uses: [use(""), use("api.*.read_key"), use("api.*.create_key", 31)], unused: true },
    { name: "30 days ago still counts", uses: [use("api.*.read_key"), use("api.*.create_key", 30)], unused: false },
    { name: "never", uses: [use("api.*.read_key")], unused: true },
    { name: "never, but it is held for 29 days", permissionsSince: ago(29), unused: false },
    { name: "never, but uses are noted for 29 days", usesSince: ago(29), unused: false },
    { name: "never, but the key is 29 days old", createdAt: ago(29), unused: false },
    {
      name: "never, and it is not known since when uses are noted",
      usesSince: Number.POSITIVE_INFINITY,
      unused: false,
    },
  ])("root key permission counts as unused only when expected: $name", ({ name: _name, unused, ...of }) => {
    const key = aKey({ permissions: twice, ...of });
    const expected = unused ? [{ kind: "unused_permissions", permissions: ["api.*.create_key"] }] : [];
    expect(findingsOf(key, NOW)).toEqual(expected);
    expect(narrowedPermissions(key, NOW)).toEqual(unused ? ["api.*.read_key"] : undefined);
  });

  test("root key permission with a wildcard that is used for a single id can be narrowed to that id", () => {
    const key = aKey({ uses: [use("api.*.read_key", 0, "api_1")] });
    expect(findingsOf(key, NOW)).toEqual([{ kind: "too_wide", permissions: ["api.*.read_key"] }]);
    expect(narrowedPermissions(key, NOW)).toEqual(["api.api_1.read_key"]);
  });

  test("narrowed root key permissions are unique and never empty", () => {
    const permissions = ["api.*.read_key", "api.api_1.read_key"];
    const uses = [use("api.*.read_key", 0, "api_1"), use("api.api_1.read_key")];
    expect(narrowedPermissions(aKey({ permissions, uses }), NOW)).toEqual(["api.api_1.read_key"]);
    expect(narrowedPermissions(aKey({ uses: [use("")] }), NOW)).toBeUndefined();
  });
});

test("last use of a root key is the latest day of all its permissions", () => {
  expect(lastUseOf([use("a", 3), use("", 1), use("b", 2)])).toBe(utcDate(ago(1)));
  expect(lastUseOf([])).toBeUndefined();
});
