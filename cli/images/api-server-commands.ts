import { apiUpdate } from "../commands/api/update.ts";
import { apiServer } from "../commands/api-server.ts";
import { dashboardLink } from "../commands/dashboard/link.ts";
import { dashboardSignOut } from "../commands/dashboard/sign-out.ts";
import { ingest } from "../commands/ingest.ts";
import { keyReencrypt } from "../commands/key/reencrypt.ts";
import { migrateCommand } from "../commands/migrate.ts";
import { migrationCreate, migrationList } from "../commands/migration.ts";
import { ownershipList, ownershipRelease, ownershipTransfer } from "../commands/ownership.ts";
import { provision } from "../commands/provision.ts";
import { redisAcl } from "../commands/redis-acl.ts";
import { refillRun } from "../commands/refill/run.ts";
import { rootkeyCreate } from "../commands/rootkey/create.ts";
import {
  workspaceCreate,
  workspaceDisable,
  workspaceEnable,
  workspaceList,
  workspaceUpdate,
} from "../commands/workspace.ts";

/*
 * Commands of the api-server image, including commands that use the database, for example `kubectl exec deploy/postern-api-server -- node
 * /app/main.mjs rootkey create`.
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
  dashboardLink,
  dashboardSignOut,
] as const;
