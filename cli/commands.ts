import type { CommandRow } from "./run-command.ts";

/* All commands of `postern`. An image of one part has some of them: cli/images. */
export const COMMANDS: readonly CommandRow[] = [
  {
    name: "dev",
    summary: "run all of Postern in one process, with an embedded Postgres",
    load: async () => (await import("./commands/dev.ts")).dev,
  },
  {
    name: "api-server",
    summary: "serve the HTTP API, project changes, ingest events",
    load: async () => (await import("./commands/api-server.ts")).apiServer,
  },
  {
    name: "ingest",
    summary: "store usage events and count them, in a process of its own",
    load: async () => (await import("./commands/ingest.ts")).ingest,
  },
  {
    name: "operator",
    summary: "reconcile manifests of a cluster or a directory",
    load: async () => (await import("./commands/operator.ts")).operator,
  },
  {
    name: "sidecar",
    summary: "protect an app: verify keys, enforce limits, forward",
    load: async () => (await import("./commands/sidecar.ts")).sidecar,
  },
  {
    name: "migrate",
    summary: "bring the database to this version's schema",
    load: async () => (await import("./commands/migrate.ts")).migrateCommand,
  },
  {
    name: "provision",
    summary: "see that a Secret of the cluster has a root key for the operator",
    load: async () => (await import("./commands/provision.ts")).provision,
  },
  {
    name: "status",
    summary: "show how the policies of a cluster stand: what is enforced, at how many pods",
    load: async () => (await import("./commands/status.ts")).status,
  },
  {
    name: "validate",
    summary: "check manifests without applying them",
    load: async () => (await import("./commands/validate.ts")).validate,
  },
  {
    name: "explain",
    summary: "say step by step what a verification would decide now, and why",
    load: async () => (await import("./commands/explain.ts")).explain,
  },
  {
    name: "decide",
    summary: "decide requests offline, by manifests and a file of keys, for tests of policies",
    load: async () => (await import("./commands/decide.ts")).decide,
  },
  {
    name: "workspace create",
    summary: "make a workspace",
    load: async () => (await import("./commands/workspace/create.ts")).workspaceCreate,
  },
  {
    name: "workspace list",
    summary: "list the workspaces, by name",
    load: async () => (await import("./commands/workspace/list.ts")).workspaceList,
  },
  {
    name: "workspace disable",
    summary: "refuse every request with the workspace's root keys, and every key of it",
    load: async () => (await import("./commands/workspace/disable.ts")).workspaceDisable,
  },
  {
    name: "workspace enable",
    summary: "undo workspace disable",
    load: async () => (await import("./commands/workspace/enable.ts")).workspaceEnable,
  },
  {
    name: "workspace update",
    summary: "change what a workspace may use of the analytics procedures, and how long its usage can be asked for",
    load: async () => (await import("./commands/workspace/update.ts")).workspaceUpdate,
  },
  {
    name: "workspace quota",
    summary: "limit the requests per minute that a workspace may send to the API",
    load: async () => (await import("./commands/workspace/quota.ts")).workspaceQuota,
  },
  {
    name: "rootkey create",
    summary: "make a root key with the permissions given",
    load: async () => (await import("./commands/rootkey/create.ts")).rootkeyCreate,
  },
  {
    name: "rootkey list",
    summary: "list the root keys of a workspace, oldest first",
    load: async () => (await import("./commands/rootkey/list.ts")).rootkeyList,
  },
  {
    name: "rootkey disable",
    summary: "refuse a root key until it is enabled again",
    load: async () => (await import("./commands/rootkey/disable.ts")).rootkeyDisable,
  },
  {
    name: "rootkey enable",
    summary: "undo rootkey disable",
    load: async () => (await import("./commands/rootkey/enable.ts")).rootkeyEnable,
  },
  {
    name: "rootkey expire",
    summary: "set when a root key expires, or that it never expires",
    load: async () => (await import("./commands/rootkey/expire.ts")).rootkeyExpire,
  },
  {
    name: "rootkey rotate",
    summary: "make the successor of a root key, which ends later",
    load: async () => (await import("./commands/rootkey/rotate.ts")).rootkeyRotate,
  },
  {
    name: "rootkey revoke",
    summary: "revoke a root key permanently",
    load: async () => (await import("./commands/rootkey/revoke.ts")).rootkeyRevoke,
  },
  {
    name: "api list",
    summary: "list the APIs of a workspace with their settings, by id",
    load: async () => (await import("./commands/api/list.ts")).apiList,
  },
  {
    name: "api set",
    summary: "change the settings of an API that no procedure changes",
    load: async () => (await import("./commands/api/set.ts")).apiSet,
  },
  {
    name: "managed list",
    summary: "list what manifests manage in a workspace, or left there",
    load: async () => (await import("./commands/managed/list.ts")).managedList,
  },
  {
    name: "managed release",
    summary: "free what a manifest manages or left, so that another one may adopt it",
    load: async () => (await import("./commands/managed/release.ts")).managedRelease,
  },
  {
    name: "managed transfer",
    summary: "give what a manifest manages or left to another one: of another cluster, namespace or name",
    load: async () => (await import("./commands/managed/transfer.ts")).managedTransfer,
  },
  {
    name: "namespace list",
    summary: "list the rate-limit namespaces of a workspace, by id",
    load: async () => (await import("./commands/namespace/list.ts")).namespaceList,
  },
  {
    name: "namespace delete",
    summary: "delete a rate-limit namespace with its overrides",
    load: async () => (await import("./commands/namespace/delete.ts")).namespaceDelete,
  },
  {
    name: "migration create",
    summary: "make a migration, for keys that were issued elsewhere",
    load: async () => (await import("./commands/migration/create.ts")).migrationCreate,
  },
  {
    name: "migration list",
    summary: "list the migrations of a workspace, by id",
    load: async () => (await import("./commands/migration/list.ts")).migrationList,
  },
  {
    name: "key reencrypt",
    summary: "encrypt all recoverable keys with the first encryption key",
    load: async () => (await import("./commands/key/reencrypt.ts")).keyReencrypt,
  },
  {
    name: "refill run",
    summary: "refill the credits of every key that is due",
    load: async () => (await import("./commands/refill/run.ts")).refillRun,
  },
  {
    name: "redis-acl",
    summary: "print the rules of a Redis user for pods, or for api-servers",
    load: async () => (await import("./commands/redis-acl.ts")).redisAcl,
  },
  {
    name: "analytics",
    summary: "show how often keys were verified, as a table and a plot",
    load: async () => (await import("./commands/analytics.ts")).analytics,
  },
  {
    name: "dashboard link",
    summary: "make a link that signs a person in to the dashboard, once",
    load: async () => (await import("./commands/dashboard/link.ts")).dashboardLink,
  },
  {
    name: "dashboard sign-out",
    summary: "sign a person out of the dashboard, everywhere",
    load: async () => (await import("./commands/dashboard/sign-out.ts")).dashboardSignOut,
  },
  {
    name: "audit",
    summary: "list the changes in a workspace and who made them, newest first",
    load: async () => (await import("./commands/audit.ts")).audit,
  },
];
