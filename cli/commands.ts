import type { CommandRow } from "./run-command.ts";
import { SUMMARIES } from "./summaries.ts";

const ROWS = [
  {
    name: "dev",
    group: "services",
    load: async () => (await import("./commands/dev.ts")).dev,
  },
  {
    name: "api-server",
    group: "services",
    load: async () => (await import("./commands/api-server.ts")).apiServer,
  },
  {
    name: "ingest",
    group: "services",
    load: async () => (await import("./commands/ingest.ts")).ingest,
  },
  {
    name: "operator",
    group: "services",
    load: async () => (await import("./commands/operator.ts")).operator,
  },
  {
    name: "sidecar",
    group: "services",
    load: async () => (await import("./commands/sidecar.ts")).sidecar,
  },
  {
    name: "migrate",
    group: "database",
    load: async () => (await import("./commands/migrate.ts")).migrateCommand,
  },
  {
    name: "provision",
    group: "database",
    load: async () => (await import("./commands/provision.ts")).provision,
  },
  {
    name: "status",
    group: "tools",
    load: async () => (await import("./commands/status.ts")).status,
  },
  {
    name: "validate",
    group: "tools",
    load: async () => (await import("./commands/validate.ts")).validate,
  },
  {
    name: "apply",
    group: "api",
    load: async () => (await import("./commands/apply.ts")).applyCommand,
  },
  {
    name: "diff",
    group: "api",
    load: async () => (await import("./commands/apply.ts")).diff,
  },
  {
    name: "delete",
    group: "api",
    load: async () => (await import("./commands/apply.ts")).deleteCommand,
  },
  {
    name: "api create",
    group: "api",
    load: async () => (await import("./commands/api/create.ts")).apiCreate,
  },
  {
    name: "key create",
    group: "api",
    load: async () => (await import("./commands/key/create.ts")).keyCreate,
  },
  {
    name: "key list",
    group: "api",
    load: async () => (await import("./commands/key/list.ts")).keyList,
  },
  {
    name: "key get",
    group: "api",
    load: async () => (await import("./commands/key/get.ts")).keyGet,
  },
  {
    name: "key verify",
    group: "api",
    load: async () => (await import("./commands/key/verify.ts")).keyVerify,
  },
  {
    name: "key disable",
    group: "api",
    load: async () => (await import("./commands/key/enable.ts")).keyDisable,
  },
  {
    name: "key enable",
    group: "api",
    load: async () => (await import("./commands/key/enable.ts")).keyEnable,
  },
  {
    name: "key reroll",
    group: "api",
    load: async () => (await import("./commands/key/reroll.ts")).keyReroll,
  },
  {
    name: "key delete",
    group: "api",
    load: async () => (await import("./commands/key/delete.ts")).keyDelete,
  },
  {
    name: "identity create",
    group: "api",
    load: async () => (await import("./commands/identity.ts")).identityCreate,
  },
  {
    name: "identity list",
    group: "api",
    load: async () => (await import("./commands/identity.ts")).identityList,
  },
  {
    name: "identity get",
    group: "api",
    load: async () => (await import("./commands/identity.ts")).identityGet,
  },
  {
    name: "identity update",
    group: "api",
    load: async () => (await import("./commands/identity.ts")).identityUpdate,
  },
  {
    name: "identity delete",
    group: "api",
    load: async () => (await import("./commands/identity.ts")).identityDelete,
  },
  {
    name: "role create",
    group: "api",
    load: async () => (await import("./commands/role.ts")).roleCreate,
  },
  {
    name: "role list",
    group: "api",
    load: async () => (await import("./commands/role.ts")).roleList,
  },
  {
    name: "role get",
    group: "api",
    load: async () => (await import("./commands/role.ts")).roleGet,
  },
  {
    name: "role update",
    group: "api",
    load: async () => (await import("./commands/role.ts")).roleUpdate,
  },
  {
    name: "role delete",
    group: "api",
    load: async () => (await import("./commands/role.ts")).roleDelete,
  },
  {
    name: "override set",
    group: "api",
    load: async () => (await import("./commands/override.ts")).overrideSet,
  },
  {
    name: "override list",
    group: "api",
    load: async () => (await import("./commands/override.ts")).overrideList,
  },
  {
    name: "override get",
    group: "api",
    load: async () => (await import("./commands/override.ts")).overrideGet,
  },
  {
    name: "override delete",
    group: "api",
    load: async () => (await import("./commands/override.ts")).overrideDelete,
  },
  {
    name: "explain",
    group: "api",
    load: async () => (await import("./commands/explain.ts")).explain,
  },
  {
    name: "simulate",
    group: "tools",
    load: async () => (await import("./commands/simulate.ts")).simulate,
  },
  {
    name: "workspace create",
    group: "database",
    load: async () => (await import("./commands/workspace.ts")).workspaceCreate,
  },
  {
    name: "workspace list",
    group: "database",
    load: async () => (await import("./commands/workspace.ts")).workspaceList,
  },
  {
    name: "workspace disable",
    group: "database",
    load: async () => (await import("./commands/workspace.ts")).workspaceDisable,
  },
  {
    name: "workspace enable",
    group: "database",
    load: async () => (await import("./commands/workspace.ts")).workspaceEnable,
  },
  {
    name: "workspace update",
    group: "database",
    load: async () => (await import("./commands/workspace.ts")).workspaceUpdate,
  },
  {
    name: "rootkey create",
    group: "database",
    load: async () => (await import("./commands/rootkey/create.ts")).rootkeyCreate,
  },
  {
    name: "rootkey list",
    group: "api",
    load: async () => (await import("./commands/rootkey/commands.ts")).rootkeyList,
  },
  {
    name: "rootkey disable",
    group: "api",
    load: async () => (await import("./commands/rootkey/commands.ts")).rootkeyDisable,
  },
  {
    name: "rootkey enable",
    group: "api",
    load: async () => (await import("./commands/rootkey/commands.ts")).rootkeyEnable,
  },
  {
    name: "rootkey update",
    group: "api",
    load: async () => (await import("./commands/rootkey/commands.ts")).rootkeyUpdate,
  },
  {
    name: "rootkey rotate",
    group: "api",
    load: async () => (await import("./commands/rootkey/commands.ts")).rootkeyRotate,
  },
  {
    name: "rootkey revoke",
    group: "api",
    load: async () => (await import("./commands/rootkey/commands.ts")).rootkeyRevoke,
  },
  {
    name: "api list",
    group: "api",
    load: async () => (await import("./commands/api/list.ts")).apiList,
  },
  {
    name: "api update",
    group: "database",
    load: async () => (await import("./commands/api/update.ts")).apiUpdate,
  },
  {
    name: "ownership list",
    group: "database",
    load: async () => (await import("./commands/ownership.ts")).ownershipList,
  },
  {
    name: "ownership release",
    group: "database",
    load: async () => (await import("./commands/ownership.ts")).ownershipRelease,
  },
  {
    name: "ownership transfer",
    group: "database",
    load: async () => (await import("./commands/ownership.ts")).ownershipTransfer,
  },
  {
    name: "namespace list",
    group: "api",
    load: async () => (await import("./commands/namespace.ts")).namespaceList,
  },
  {
    name: "namespace delete",
    group: "api",
    load: async () => (await import("./commands/namespace.ts")).namespaceDelete,
  },
  {
    name: "migration create",
    group: "database",
    load: async () => (await import("./commands/migration.ts")).migrationCreate,
  },
  {
    name: "migration list",
    group: "database",
    load: async () => (await import("./commands/migration.ts")).migrationList,
  },
  {
    name: "import kong",
    group: "api",
    load: async () => (await import("./commands/import/commands.ts")).importFrom("kong"),
  },
  {
    name: "import apisix",
    group: "api",
    load: async () => (await import("./commands/import/commands.ts")).importFrom("apisix"),
  },
  {
    name: "import kuadrant",
    group: "api",
    load: async () => (await import("./commands/import/commands.ts")).importFrom("kuadrant"),
  },
  {
    name: "import envoy-gateway",
    group: "api",
    load: async () => (await import("./commands/import/commands.ts")).importFrom("envoy-gateway"),
  },
  {
    name: "import unkey",
    group: "api",
    load: async () => (await import("./commands/import/commands.ts")).importFrom("unkey"),
  },
  {
    name: "key reencrypt",
    group: "database",
    load: async () => (await import("./commands/key/reencrypt.ts")).keyReencrypt,
  },
  {
    name: "refill run",
    group: "database",
    load: async () => (await import("./commands/refill/run.ts")).refillRun,
  },
  {
    name: "redis-acl",
    group: "tools",
    load: async () => (await import("./commands/redis-acl.ts")).redisAcl,
  },
  {
    name: "analytics",
    group: "api",
    load: async () => (await import("./commands/analytics.ts")).analytics,
  },
  {
    name: "dashboard link",
    group: "database",
    load: async () => (await import("./commands/dashboard/link.ts")).dashboardLink,
  },
  {
    name: "dashboard sign-out",
    group: "database",
    load: async () => (await import("./commands/dashboard/sign-out.ts")).dashboardSignOut,
  },
  {
    name: "audit",
    group: "api",
    load: async () => (await import("./commands/audit.ts")).audit,
  },
  {
    name: "profile add",
    group: "tools",
    load: async () => (await import("./commands/profile.ts")).profileAdd,
  },
  {
    name: "profile list",
    group: "tools",
    load: async () => (await import("./commands/profile.ts")).profileList,
  },
  {
    name: "profile use",
    group: "tools",
    load: async () => (await import("./commands/profile.ts")).profileUse,
  },
  {
    name: "profile remove",
    group: "tools",
    load: async () => (await import("./commands/profile.ts")).profileRemove,
  },
  {
    name: "completion bash",
    group: "tools",
    load: async () => (await import("./commands/completion.ts")).completion("bash", COMMANDS),
  },
  {
    name: "completion zsh",
    group: "tools",
    load: async () => (await import("./commands/completion.ts")).completion("zsh", COMMANDS),
  },
  {
    name: "completion fish",
    group: "tools",
    load: async () => (await import("./commands/completion.ts")).completion("fish", COMMANDS),
  },
] as const satisfies readonly Omit<CommandRow, "summary">[];

/** All commands of `postern`. Each container image has a subset (cli/images). */
export const COMMANDS: readonly CommandRow[] = ROWS.map((row) => ({ ...row, summary: SUMMARIES[row.name] }));
