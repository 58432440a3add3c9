import { analytics } from "../commands/analytics.ts";
import { apiList } from "../commands/api/list.ts";
import { apiSet } from "../commands/api/set.ts";
import { apiServer } from "../commands/api-server.ts";
import { audit } from "../commands/audit.ts";
import { dashboardLink } from "../commands/dashboard/link.ts";
import { dashboardSignOut } from "../commands/dashboard/sign-out.ts";
import { ingest } from "../commands/ingest.ts";
import { keyReencrypt } from "../commands/key/reencrypt.ts";
import { managedList } from "../commands/managed/list.ts";
import { managedRelease } from "../commands/managed/release.ts";
import { managedTransfer } from "../commands/managed/transfer.ts";
import { migrateCommand } from "../commands/migrate.ts";
import { migrationCreate } from "../commands/migration/create.ts";
import { migrationList } from "../commands/migration/list.ts";
import { namespaceDelete } from "../commands/namespace/delete.ts";
import { namespaceList } from "../commands/namespace/list.ts";
import { provision } from "../commands/provision.ts";
import { redisAcl } from "../commands/redis-acl.ts";
import { refillRun } from "../commands/refill/run.ts";
import { rootkeyCreate } from "../commands/rootkey/create.ts";
import { rootkeyDisable, rootkeyEnable } from "../commands/rootkey/enable.ts";
import { rootkeyExpire } from "../commands/rootkey/expire.ts";
import { rootkeyList } from "../commands/rootkey/list.ts";
import { rootkeyRevoke } from "../commands/rootkey/revoke.ts";
import { rootkeyRotate } from "../commands/rootkey/rotate.ts";
import { workspaceCreate } from "../commands/workspace/create.ts";
import { workspaceDisable, workspaceEnable } from "../commands/workspace/enable.ts";
import { workspaceList } from "../commands/workspace/list.ts";
import { workspaceQuota } from "../commands/workspace/quota.ts";
import { workspaceUpdate } from "../commands/workspace/update.ts";

/* With the commands that work on the database: `kubectl exec deploy/postern-api-server -- node /app/main.mjs rootkey list`. */
export const API_SERVER_COMMANDS = [
  apiServer,
  ingest,
  migrateCommand,
  provision,
  workspaceCreate,
  workspaceList,
  workspaceDisable,
  workspaceEnable,
  workspaceUpdate,
  workspaceQuota,
  rootkeyCreate,
  rootkeyList,
  rootkeyDisable,
  rootkeyEnable,
  rootkeyExpire,
  rootkeyRotate,
  rootkeyRevoke,
  apiList,
  apiSet,
  namespaceList,
  managedList,
  managedRelease,
  managedTransfer,
  namespaceDelete,
  migrationCreate,
  migrationList,
  keyReencrypt,
  refillRun,
  redisAcl,
  analytics,
  dashboardLink,
  dashboardSignOut,
  audit,
] as const;
