import { DAY_MS } from "../../core/utc-date.ts";
import type { UsageEvent } from "../../edge/events/contract.ts";
import { aVerificationEvent } from "../builders/usage-event.ts";
import { waitFor } from "../harness/wait.ts";
import { inDatabase } from "./database.ts";
import type { Dashboard } from "./harness.ts";
import { storeUsage } from "./usage-events.ts";

const CUSTOMERS = [
  "acme",
  "northwind",
  "initech",
  "globex",
  "umbrella",
  "hooli",
  "stark",
  "wayne",
  "tyrell",
  "cyberdyne",
];
const ENVIRONMENTS = ["production", "staging"] as const;
/** Among the keys, in the order in which they are made: one with credits, limits of its own and of its owner. */
const EXPLAINED = 2;
const ROOT_KEYS = [
  { name: "billing backend", environment: "production", permissions: ["api.*.verify_key"] },
  {
    name: "sign-up service",
    environment: "production",
    permissions: ["api.*.create_key", "api.*.update_key", "identity.*.create_identity"],
  },
  { name: "nightly report", environment: "staging", permissions: ["api.*.read_analytics", "api.*.read_api"] },
] as const;

const PEOPLE = [
  ["Alan Turing", "viewer"],
  ["Grace Hopper", "admin"],
  ["Katherine Johnson", "operator"],
  ["Radia Perlman", "operator"],
] as const;

/** A workspace as a small company has it. Returns a key whose explanation has something to show. */
export async function fillExample(dashboard: Dashboard): Promise<{ keyId: string }> {
  const { call, sidecarUrl, databaseUrl } = dashboard;
  for (const { name, environment, permissions } of ROOT_KEYS) {
    await call("admin.createRootKey", { name, environment, permissions: [...permissions] });
  }
  const { apiId } = await call("apis.createApi", { name: "billing" });
  const { apiId: reports } = await call("apis.createApi", { name: "reports" });
  for (const slug of ["invoices.read", "invoices.write", "reports.read", "reports.export", "members.invite"]) {
    await call("permissions.createPermission", { name: slug.replace(".", " "), slug });
  }
  for (const [name, permissions] of [
    ["accountant", ["invoices.read", "invoices.write"]],
    ["auditor", ["invoices.read", "reports.read"]],
    ["owner", ["invoices.read", "invoices.write", "reports.read", "reports.export", "members.invite"]],
  ] as const) {
    const { roleId } = await call("permissions.createRole", { name, description: `For ${name}s` });
    await call("permissions.setRolePermissions", { roleId, permissions: [...permissions] });
  }
  const keys: string[] = [];
  const used: KeyInUse[] = [];
  for (const [index, externalId] of CUSTOMERS.entries()) {
    const ratelimits = [{ name: "requests", limit: 100 * (index + 1), duration: 60_000 }];
    await call("identities.createIdentity", {
      externalId,
      ratelimits,
      meta: { plan: index % 3 === 0 ? "pro" : "free" },
    });
    for (const environment of ENVIRONMENTS) {
      const ofApi = index % 4 === 3 ? reports : apiId;
      const { key, keyId } = await call("keys.createKey", {
        apiId: ofApi,
        prefix: environment === "production" ? "live" : "test",
        name: `${externalId} ${environment}`,
        externalId,
        roles: [["accountant", "auditor", "owner"][index % 3] ?? "owner"],
        enabled: index !== 4,
        ...(index === 1 ? { credits: { remaining: 40 } } : {}),
        ratelimits: [{ name: "burst", limit: 5, duration: 10_000, autoApply: true }],
      });
      keys.push(key);
      used.push({ keyId, apiId: ofApi, externalId });
    }
  }
  for (const [pattern, limit] of [
    ["acme*", 500],
    ["northwind", 200],
    ["*-trial", 5],
  ] as const) {
    await call("ratelimit.limit", { namespace: "emails", identifier: pattern, limit: 10, duration: 60_000 });
    await call("ratelimit.setOverride", { namespace: "emails", identifier: pattern, limit, duration: 60_000 });
  }
  // They are used for a day already, and were made before that.
  await inDatabase(dashboard, "update keys set created_at = created_at - $1::bigint * (1 + ascii(name) % 9)", [
    40 * DAY_MS,
  ]);
  const { id: workspaceId } = await call("workspaces.getWorkspace", {});
  for (const [index, [name, role]] of PEOPLE.entries()) {
    await inDatabase(
      dashboard,
      `insert into sessions (id, token_hash, issuer, subject, name, signed_in_by, roles, link_made_by, created_at, last_seen_at, expires_at)
       values ($1, $1, 'postern:link', $2, $2, 'link', $3, 'Ada Lovelace', $4, $4, $4::bigint + 3600000)`,
      [`ses_${index}`, name, JSON.stringify([{ workspace: workspaceId, role }]), Date.now() - 300_000 * (index + 1)],
    );
  }
  const events = usageOfDay(workspaceId, used);
  await storeUsage(databaseUrl, events);
  let verified = events.length;
  for (const [index, key] of keys.entries()) {
    for (let count = 0; count < 3 + (index % 5); count++, verified++) await call("keys.verifyKey", { key });
    if (sidecarUrl !== null) await fetch(`${sidecarUrl}/orders`, { headers: { authorization: `Bearer ${key}` } });
  }
  await waitFor(
    "usage to be counted",
    async () => {
      const [row] = await call("analytics.getVerifications", {
        query: "SELECT sum(count) AS verifications FROM key_verifications_per_hour_v1",
      });
      return Number(row?.verifications) >= verified;
    },
    { deadlineMs: 30_000 },
  );
  const explained = used[EXPLAINED];
  if (explained === undefined) throw new Error("there is no such key");
  return explained;
}

interface KeyInUse {
  readonly keyId: string;
  readonly apiId: string;
  readonly externalId: string;
}

const QUARTER_MS = 15 * 60_000;

/** Of the last 24 hours: more by day than by night, some of it refused. */
function usageOfDay(workspaceId: string, keys: readonly KeyInUse[]): UsageEvent[] {
  const beganMs = Date.now() - 96 * QUARTER_MS;
  return Array.from({ length: 96 }, (_, quarter) => {
    const count = Math.round(14 + 11 * Math.sin((quarter / 96) * 2 * Math.PI - 1));
    return Array.from({ length: count }, (_, n) => {
      const at = quarter * 31 + n;
      // The first keys are used most.
      const key = keys[Math.floor(((at * 7) % keys.length) ** 2 / keys.length)];
      return aVerificationEvent({
        ...key,
        id: `ev_${quarter}_${n}`,
        workspaceId,
        requestId: `req_${quarter}_${n}`,
        timeMs: beganMs + quarter * QUARTER_MS + n * 1000,
        outcome: at % 9 === 0 ? "RATE_LIMITED" : at % 31 === 0 ? "EXPIRED" : "VALID",
      });
    });
  }).flat();
}
