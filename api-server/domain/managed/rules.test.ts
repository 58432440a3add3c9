import { describe, expect, test } from "vitest";
import { PublicError } from "../../../core/errors.ts";
import type { Management } from "./rules.ts";
import { adopting, adoptingManager, creatingManager, guardManaged, isRemoval, UNMANAGED } from "./rules.ts";

const resource = { noun: "role", index: "roles_manager" } as const;
const US = "main/Role/shop/editor";
const THEM = "main/Role/bank/editor";

const management = (headers: Partial<Management>): { management: Management } => ({
  management: { ...UNMANAGED, ...headers },
});
const ADOPT = { adopt: true };
const RELEASE = { release: true };
const us = { manager: US };

describe("the manager of a row after a change", () => {
  test.each<{ name: string; stored: string | null; headers: Partial<Management>; after: string | null }>([
    { name: "none, of an unmanaged one without the headers", stored: null, headers: {}, after: null },
    { name: "none, of an unmanaged one that was not to be adopted", stored: null, headers: us, after: null },
    { name: "the caller, which adopts an unmanaged one", stored: null, headers: { ...us, ...ADOPT }, after: US },
    { name: "none, when it is adopted by no manager", stored: null, headers: ADOPT, after: null },
    { name: "the caller, whose it is", stored: US, headers: us, after: US },
    { name: "the caller, whose it is, also when it would adopt", stored: US, headers: { ...us, ...ADOPT }, after: US },
    { name: "none, when the caller releases it", stored: US, headers: { ...us, ...RELEASE }, after: null },
    {
      name: "none, when the caller would adopt and release it",
      stored: null,
      headers: { ...us, ...ADOPT, ...RELEASE },
      after: null,
    },
  ])("manager of a row after a change is correct: $name", ({ stored, headers, after }) => {
    expect(guardManaged(management(headers), resource, { id: "role_1", manager: stored })).toBe(after);
  });

  test.each([{}, us, { ...us, ...ADOPT }, { ...us, ...RELEASE }, ADOPT, RELEASE])(
    "change with %o of another manager's object is rejected, and the error names the manifest",
    (headers) => {
      const change = () => guardManaged(management(headers), resource, { id: "role_1", manager: THEM });
      expect(change).toThrow(expect.objectContaining({ kind: "managed_by_manifest" }));
      expect(change).toThrow(
        `The role role_1 is managed by ${THEM}. Edit that manifest instead; a direct change would be undone.`,
      );
    },
  );
});

test("deletion by a manager removes the object unless the manager releases it", () => {
  expect(isRemoval(management({}))).toBe(true);
  expect(isRemoval(management(us))).toBe(true);
  expect(isRemoval(management({ ...us, ...RELEASE }))).toBe(false);
  // Without a manager there is nothing that could be released.
  expect(isRemoval(management(RELEASE))).toBe(true);
});

test("created object is managed by the caller, but an existing object only if the caller adopts it", () => {
  expect(creatingManager(management(us))).toBe(US);
  expect(creatingManager(management(ADOPT))).toBeNull();
  expect(adoptingManager(management({ ...us, ...ADOPT }))).toBe(US);
  expect(adoptingManager(management(us))).toBeNull();
  expect(adoptingManager(management(ADOPT))).toBeNull();
});

describe("a statement that may write a manager", () => {
  const breaking = (constraint: string) => async (): Promise<never> => {
    throw Object.assign(new Error("duplicate key"), { code: "23505", constraint });
  };

  test("SQL statement is rejected if the manager already has another object of the kind", async () => {
    const refused = adopting(management(us), resource, breaking("roles_manager"));
    await expect(refused).rejects.toMatchObject({ kind: "managed_exists", cause: { constraint: "roles_manager" } });
    await expect(refused).rejects.toThrow(`${US} already manages another object of this kind`);
  });

  test("SQL statement that can write a manager returns its result, and errors other than a manager conflict are rethrown", async () => {
    await expect(adopting(management(us), resource, breaking("roles_name"))).rejects.not.toThrow(PublicError);
    await expect(adopting(management(us), resource, async () => 7)).resolves.toBe(7);
  });
});
