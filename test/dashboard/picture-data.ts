import { waitFor } from "../harness/wait.ts";
import type { Dashboard } from "./harness.ts";

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

/** A workspace as a small company has it. */
export async function fillExample({ call, sidecarUrl }: Dashboard): Promise<void> {
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
  for (const [index, externalId] of CUSTOMERS.entries()) {
    const ratelimits = [{ name: "requests", limit: 100 * (index + 1), duration: 60_000 }];
    await call("identities.createIdentity", {
      externalId,
      ratelimits,
      meta: { plan: index % 3 === 0 ? "pro" : "free" },
    });
    for (const environment of ENVIRONMENTS) {
      const { key } = await call("keys.createKey", {
        apiId: index % 4 === 3 ? reports : apiId,
        prefix: environment === "production" ? "live" : "test",
        name: `${externalId} ${environment}`,
        externalId,
        roles: [["accountant", "auditor", "owner"][index % 3] ?? "owner"],
        enabled: index !== 4,
        ...(index === 1 ? { credits: { remaining: 40 } } : {}),
        ratelimits: [{ name: "burst", limit: 5, duration: 10_000, autoApply: true }],
      });
      keys.push(key);
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
  let verified = 0;
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
}
