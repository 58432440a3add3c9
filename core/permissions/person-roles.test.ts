import { describe, expect, test } from "vitest";
import { grantsOfPerson, higherRole, PERSON_ROLES } from "./person-roles.ts";
import { ALL_GRANTS, WORKSPACE_GRANTS } from "./root-key.ts";

const [viewer, operator, admin] = PERSON_ROLES.map((role) => new Set(grantsOfPerson(role))) as [
  Set<string>,
  Set<string>,
  Set<string>,
];

describe("dashboard roles", () => {
  test("each dashboard role includes the permissions of the lower role", () => {
    expect(viewer.isSubsetOf(operator)).toBe(true);
    expect(operator.isSubsetOf(admin)).toBe(true);
    expect(viewer.size).toBeLessThan(operator.size);
    expect(operator.size).toBeLessThan(admin.size);
  });

  test("viewer role allows no changes, verification or plaintext keys", () => {
    expect([...viewer].filter((tuple) => !/\.(read_[a-z_]+|list_overrides|explain)$/.test(tuple))).toEqual([]);
    expect(viewer).toContain("workspace.*.read_audit");
    expect(viewer).not.toContain("api.*.verify_key");
    expect(viewer).not.toContain("ratelimit.*.limit");
  });

  test("admin role allows some procedures that no other role allows", () => {
    expect([...admin.difference(operator)].sort()).toEqual([
      "api.*.decrypt_key",
      "api.*.delete_api",
      "workspace.*.create_root_key",
      "workspace.*.create_sign_in_link",
      "workspace.*.delete_root_key",
      "workspace.*.delete_session",
      "workspace.*.read_person",
      "workspace.*.update_root_key",
      "workspace.*.update_workspace",
    ]);
  });

  test("no dashboard role grants access outside its workspace", () => {
    expect([...admin].filter((tuple) => tuple.startsWith("installation."))).toEqual([]);
    expect(ALL_GRANTS.length).toBeGreaterThan(WORKSPACE_GRANTS.length);
  });

  test("combining two dashboard roles returns the higher one", () => {
    expect(higherRole("viewer", "admin")).toBe("admin");
    expect(higherRole("operator", "viewer")).toBe("operator");
  });
});
