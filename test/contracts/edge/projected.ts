import type { RecordWrite } from "../../../edge/projection/contract.ts";
import type { RecordRef } from "../../../edge/records.ts";
import { aKeyRecord } from "../../builders/key-view.ts";
import { aName } from "./edges.ts";

/** Returns a workspace with a key that has a role and an identity, in the order of the relay: referenced records first. */
export function aWorkspace() {
  const workspaceId = aName("ws");
  const ids = { hash: `${aName("hash")}+/=`, keyId: aName("key"), apiId: aName("api"), roleId: aName("role") };
  const identityId = aName("id");
  const ref = (kind: RecordRef["kind"], id: string): RecordRef => ({ workspaceId, kind, id });
  const refs = {
    workspace: ref("workspace", workspaceId),
    api: ref("api", ids.apiId),
    role: ref("role", ids.roleId),
    identity: ref("identity", identityId),
    key: ref("key", ids.hash),
  };
  const key = aKeyRecord({
    workspaceId,
    keyId: ids.keyId,
    apiId: ids.apiId,
    identityId,
    roleIds: [ids.roleId],
    permissions: ["orders.read"],
  });
  const role = { id: ids.roleId, name: "editor", permissions: ["orders.write"] };
  const writes: RecordWrite[] = [
    { ref: refs.workspace, data: { id: workspaceId, enabled: true } },
    { ref: refs.api, data: { id: ids.apiId, name: "orders" } },
    { ref: refs.role, data: role },
    { ref: refs.identity, data: { id: identityId, externalId: "alice", ratelimits: [] } },
    { ref: refs.key, data: key },
  ];
  return { workspaceId, ...ids, identityId, ref, refs, key, role, writes };
}
