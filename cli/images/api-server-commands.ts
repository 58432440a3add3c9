import { analytics } from "../commands/analytics.ts";
import { apiUpdate } from "../commands/api/update.ts";
import { apiServer } from "../commands/api-server.ts";
import { dashboardLink } from "../commands/dashboard/link.ts";
import { dashboardSignOut } from "../commands/dashboard/sign-out.ts";
import { ingest } from "../commands/ingest.ts";
import { keyReencrypt } from "../commands/key/reencrypt.ts";
import { migrateCommand } from "../commands/migrate.ts";
import { migrationCreate } from "../commands/migration/create.ts";
import { migrationList } from "../commands/migration/list.ts";
import { ownershipList } from "../commands/ownership/list.ts";
import { ownershipRelease } from "../commands/ownership/release.ts";
import { ownershipTransfer } from "../commands/ownership/transfer.ts";
import { provision } from "../commands/provision.ts";
import { redisAcl } from "../commands/redis-acl.ts";
import { refillRun } from "../commands/refill/run.ts";
import { rootkeyCreate } from "../commands/rootkey/create.ts";
import { workspaceCreate } from "../commands/workspace/create.ts";
import { workspaceDisable, workspaceEnable } from "../commands/workspace/enable.ts";
import { workspaceList } from "../commands/workspace/list.ts";
import { workspaceUpdate } from "../commands/workspace/update.ts";

/*
 * Commands of the api-server image, including commands that use the database: `kubectl exec deploy/postern-api-server -- node /app/main.mjs
 * rootkey create`.
 */
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
  rootkeyCreate,
  apiUpdate,
  ownershipList,
  ownershipRelease,
  ownershipTransfer,
  migrationCreate,
  migrationList,
  keyReencrypt,
  refillRun,
  redisAcl,
  analytics,
  dashboardLink,
  dashboardSignOut,
] as const;
