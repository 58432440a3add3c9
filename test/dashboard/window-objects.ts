import { policyBody } from "../../api-server/test/resources.ts";
import { inDatabase } from "./database.ts";
import type { Dashboard } from "./harness.ts";

/** The objects that the windows are about. */
export interface Made {
  readonly apiId: string;
  readonly protectedApiId: string;
  readonly keyId: string;
  readonly externalId: string;
  readonly identityId: string;
  readonly rootKeyId: string;
  /** Holds more than it was asked for. */
  readonly wideRootKeyId: string;
  readonly roleName: string;
  readonly slug: string;
  readonly namespaceId: string;
  readonly policyId: string;
  /** Another one that is enabled, and one that is not; their names sort after `default`. */
  readonly workspaceId: string;
  readonly disabledWorkspaceId: string;
  readonly personName: string;
}

const DAY_MS = 86_400_000;
const LIMIT = { name: "requests", limit: 5, duration: 60_000 };

/** Makes them, with names and descriptions by `text`. Where the API takes no free text they have plain ones. */
export async function makeObjects(
  dashboard: Dashboard,
  text: (what: string, lengthMax: number) => string,
): Promise<Made> {
  const { call } = dashboard;
  const unique = String(Date.now());
  const externalId = `owner-${unique}`;
  const slug = `documents.read.${unique}`;
  const meta = { [text("meta", 100)]: text("meta", 1000), list: [text("meta", 1000)] };
  const { apiId } = await call("apis.createApi", { name: text("before", 255) });
  await call("apis.updateApi", { apiId, name: text("api", 255) });
  const { apiId: protectedApiId } = await call("apis.createApi", { name: text("protected", 255) });
  await inDatabase(dashboard, "update apis set delete_protection = true where id = $1", [protectedApiId]);
  const { identityId } = await call("identities.createIdentity", {
    externalId,
    meta,
    ratelimits: [{ ...LIMIT, name: text("limit", 128) }],
  });
  const role = { name: text("role", 128), description: text("role", 512) };
  await call("permissions.createPermission", { slug, name: text("permission", 512), description: text("what", 512) });
  await call("permissions.createRole", { ...role, permissions: [slug] });
  const { keyId } = await call("keys.createKey", {
    apiId,
    externalId,
    name: text("key", 255),
    meta,
    credits: { remaining: 5 },
    ratelimits: [{ ...LIMIT, name: text("limit", 128) }],
    roles: [role.name],
    permissions: [slug],
  });
  const permissions = ["api.*.create_api", "api.*.read_api"];
  const { rootKeyId } = await call("admin.createRootKey", { name: text("root key", 255), permissions });
  const { rootKeyId: wideRootKeyId } = await call("admin.createRootKey", { name: text("wide", 255), permissions });
  await holdTooMuch(dashboard, wideRootKeyId, permissions[1] ?? "");
  const { namespaceId } = await call("ratelimit.createNamespace", { name: text("namespace", 255) });
  const limit = { namespace: namespaceId, limit: 5, duration: 60_000 };
  await call("ratelimit.setOverride", { ...limit, identifier: text("identifier", 255) });
  const rule = {
    match: { path: { prefix: "/" } },
    permissions: slug,
    ratelimits: [{ name: text("limit", 128), limit: 5, duration: "1m" }],
  };
  const policy = policyBody(apiId, `policy-${unique}`, { rules: [rule] });
  const { policyId = "" } = (await call("managed.applyObject", policy)).ids;
  const { workspaceId } = await call("admin.createWorkspace", { name: `enabled-${unique}` });
  const { workspaceId: disabledWorkspaceId } = await call("admin.createWorkspace", { name: `off-${unique}` });
  await call("admin.updateWorkspace", { workspaceId: disabledWorkspaceId, enabled: false });
  const personName = text("person", 255);
  await makePerson(dashboard, personName);
  return {
    apiId,
    protectedApiId,
    keyId,
    externalId,
    identityId,
    rootKeyId,
    wideRootKeyId,
    roleName: role.name,
    slug,
    namespaceId,
    policyId,
    workspaceId,
    disabledWorkspaceId,
    personName,
  };
}

/** Signs a person in to the workspace, and makes a sign-in link for the same name, which expires after the test. */
async function makePerson(dashboard: Dashboard, name: string): Promise<void> {
  await dashboard.call("admin.createSignInLink", { name, role: "operator" });
  await inDatabase(dashboard, "update sign_in_links set expires_at = expires_at + 3600000");
  await inDatabase(
    dashboard,
    `insert into sessions (id, token_hash, issuer, subject, name, email, signed_in_by, roles, link_made_by, remote_ip, user_agent, created_at,
                           last_seen_at, expires_at)
     select l.id, l.id, 'postern:link', l.name, l.name, l.name, 'link', jsonb_build_array(jsonb_build_object('workspace', l.workspace_id, 'role', l.role)),
            l.name, '10.0.0.1', l.name, l.created_at, l.created_at, l.expires_at
       from sign_in_links l
      where l.name = $1`,
    [name],
  );
}

/** As if it had been made 40 days ago, and asked for one of its permissions alone since then. */
async function holdTooMuch(dashboard: Dashboard, rootKeyId: string, tuple: string): Promise<void> {
  const agoMs = Date.now() - 40 * DAY_MS;
  await inDatabase(dashboard, "update settings set value = to_jsonb($1::bigint) where name = 'root-key-usage-since'", [
    agoMs,
  ]);
  await inDatabase(dashboard, "update root_keys set created_at = $2, permissions_changed_at = null where id = $1", [
    rootKeyId,
    agoMs,
  ]);
  await inDatabase(
    dashboard,
    `insert into root_key_usage (root_key_id, tuple, workspace_id, last_used_on)
     select id, $2, workspace_id, current_date from root_keys where id = $1`,
    [rootKeyId, tuple],
  );
}
