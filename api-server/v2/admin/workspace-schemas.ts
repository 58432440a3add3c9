import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { QUOTA_MAX, WORKSPACE_NAME } from "../../../core/workspaces/workspace.ts";
import type { WorkspaceRow } from "../../db/workspaces.ts";
import { unixMs } from "../schemas.ts";

/* Shared fields of the workspace procedures (api-v2.md section 24.4). */

export const WorkspaceId = z
  .string()
  .min(3)
  .max(255)
  .regex(/^[a-zA-Z0-9_]+$/)
  .describe("Id of the workspace.")
  .meta({ examples: ["ws_4mNp6Qr8St1Uv3Wx"] });

export const WorkspaceName = z
  .string()
  .regex(WORKSPACE_NAME)
  .describe(
    "Unique name. Letters, digits, dots, dashes and underscores, as in a Kubernetes label value; must not begin with `ws_`.",
  )
  .meta({ examples: ["team-shop"] });

export const QuotaPerMinute = z
  .int()
  .min(0)
  .max(QUOTA_MAX)
  .nullable()
  .describe(
    "Maximum number of API requests per minute, over all root keys. null means unlimited; 0 rejects all requests.",
  )
  .meta({ examples: [6000] });

export const WorkspaceOut = z.strictObject({
  workspaceId: WorkspaceId,
  name: z
    .string()
    .describe("Name of the workspace.")
    .meta({ examples: ["team-shop"] }),
  enabled: z
    .boolean()
    .describe(
      "Whether the workspace is enabled. Root keys of a disabled workspace get 403, and verifying its keys returns FORBIDDEN.",
    ),
  quotaPerMinute: QuotaPerMinute,
  createdAt: unixMs("When the workspace was created, Unix milliseconds."),
});
export type WorkspaceOut = z.output<typeof WorkspaceOut>;

export const toWorkspaceOut = (row: WorkspaceRow): WorkspaceOut => ({
  workspaceId: row.id,
  name: row.name,
  enabled: row.enabled,
  quotaPerMinute: row.quota_per_minute,
  createdAt: row.created_at,
});

export const workspaceAlreadyExists = (name: string): PublicError =>
  new PublicError("workspace_already_exists", `A workspace named ${name} already exists.`);
