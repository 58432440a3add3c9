import * as z from "zod";
import { MANAGER, parseManager } from "../../../core/manifests/manager.ts";
import { APPLIED_KINDS, type AppliedKind } from "../../domain/managed/manifests/apply-object.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";
import { ApiId } from "../schemas.ts";

/* Fields of managed.applyObject and managed.deleteObject. */

export const ManifestKind = z
  .enum(APPLIED_KINDS)
  .describe("Kind of the manifest.")
  .meta({ examples: ["Role"] });

export const ManagerOfManifest = z
  .string()
  .max(1015)
  .regex(MANAGER)
  .describe("Manager: `<cluster>/<kind>/<namespace>/<name>` of the manifest. Its kind must be that of the call.")
  .meta({ examples: ["main/Role/shop/editor"] });

export const DryRun = z
  .boolean()
  .default(false)
  .describe("Whether to only return the result, without changing anything. This requires only permissions to read.");

export const OnlyIfFence = z
  .int()
  .min(0)
  .max(2_147_483_647)
  .optional()
  .describe(
    "Fencing number of an operator, which increases with each change of its leader. A call with a lower number than an earlier call of the same cluster is rejected: 409 `stale_leader`.",
  )
  .meta({ examples: [7] });

export const StoredIds = z
  .strictObject({
    roleId: z
      .string()
      .optional()
      .describe("Id of the role.")
      .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
    namespaceId: z
      .string()
      .optional()
      .describe("Id of the rate-limit namespace.")
      .meta({ examples: ["rlns_3hJk8Lm2Np5Qr9St"] }),
    overrideId: z
      .string()
      .optional()
      .describe("Id of the override.")
      .meta({ examples: ["rlor_2bDf5Hj7Lm9Nq1Rt"] }),
    apiId: ApiId.optional().describe("Id of the API of the policy."),
    policyId: z
      .string()
      .optional()
      .describe("Id of the policy.")
      .meta({ examples: ["pol_6e5bd26a08226eff56e6d06e59fb97d8"] }),
    keyId: z
      .string()
      .optional()
      .describe("Id of the key that the Secret contains.")
      .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] }),
  })
  .describe("Ids of the stored objects of the manifest. On a dry run, new objects have none.");

/** @throws PublicError 400 if the kind in the manager's name differs from the manifest's kind. */
export function requireKind(manager: string, kind: AppliedKind): void {
  if (parseManager(manager)?.kind === kind) return;
  throw invalidField("body.manager", `expected a manager of the kind ${kind}: <cluster>/${kind}/<namespace>/<name>`);
}
