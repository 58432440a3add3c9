import { expect, test } from "vitest";
import { aKeyRecord } from "../test/builders/key-view.ts";
import { REFERRED_KINDS, refsOfKey } from "./records.ts";

test("key record references its workspace, API, identity and roles in one workspace", () => {
  expect(refsOfKey(aKeyRecord())).toEqual([
    { workspaceId: "ws_2", kind: "workspace", id: "ws_2" },
    { workspaceId: "ws_2", kind: "api", id: "api_9" },
    { workspaceId: "ws_2", kind: "identity", id: "id_5" },
    { workspaceId: "ws_2", kind: "role", id: "role_8" },
    { workspaceId: "ws_2", kind: "role", id: "role_3" },
  ]);
});

test("tombstones are kept only for records that a key references", () => {
  expect(new Set(refsOfKey(aKeyRecord()).map(({ kind }) => kind))).toEqual(REFERRED_KINDS);
});
