import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { ApiKeySpec } from "../../../core/manifests/api-key.ts";
import { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import { problemsOf } from "../../../core/manifests/check.ts";
import { RatelimitNamespaceSpec } from "../../../core/manifests/ratelimit-namespace.ts";
import { RatelimitOverrideSpec } from "../../../core/manifests/ratelimit-override.ts";
import { RoleSpec } from "../../../core/manifests/role.ts";
import { type DigestedKind, findDigest } from "../../db/managed-digests.ts";
import { applyApiKey, type KeyOutcome } from "../../domain/managed/manifests/api-key.ts";
import type { Application, Applied, Transaction } from "../../domain/managed/manifests/application.ts";
import { type AppliedKind, inManifestTransaction } from "../../domain/managed/manifests/apply-object.ts";
import { applyNamespace } from "../../domain/managed/manifests/namespace.ts";
import { applyOverride } from "../../domain/managed/manifests/override.ts";
import { TO_APPLY } from "../../domain/managed/manifests/permissions.ts";
import { applyPolicy } from "../../domain/managed/manifests/policy.ts";
import { applyRole } from "../../domain/managed/manifests/role.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { NewKey } from "../key-reply.ts";
import { findPolicyStatus, PolicyStatus } from "../policies/listStatus.ts";
import { unixMs } from "../schemas.ts";
import { Digest } from "./managed-kinds.ts";
import { DryRun, ManagerOfManifest, ManifestKind, OnlyIfFence, requireKind, StoredIds } from "./manifests.ts";

const Body = z.strictObject({
  manager: ManagerOfManifest,
  kind: ManifestKind,
  spec: z
    .record(z.string(), z.unknown())
    .describe("`spec` of the manifest, as in Kubernetes.")
    .meta({ examples: [{ name: "editor", permissions: ["documents.read", "documents.write"] }] }),
  uid: z
    .string()
    .min(1)
    .max(253)
    .optional()
    .describe("Uid of the Kubernetes object. Generations are compared only within one uid. Only for policies.")
    .meta({ examples: ["5f1c6f0e-6f0b-4a63-9f5c-3d7b7f0f3a52"] }),
  generation: z
    .int()
    .min(1)
    .optional()
    .describe("Generation of the Kubernetes object. Default: the number of changes so far. Only for policies.")
    .meta({ examples: [3] }),
  mayReferTo: z
    .array(ManagerOfManifest)
    .max(256)
    .default([])
    .describe(
      "Managers of manifests in other Kubernetes namespaces to which this manifest may refer, because their `allowedNamespaces` contain its namespace.",
    ),
  adopt: z
    .enum(["Match", "Override"])
    .optional()
    .describe("Same as `spec.adopt`, but takes precedence over it.")
    .meta({ examples: ["Match"] }),
  onlyIfManaged: z
    .boolean()
    .default(false)
    .describe(
      "Whether to change only objects that the manifest already manages, and otherwise respond with 409 `not_managed`.",
    ),
  secret: z
    .strictObject({
      keyId: z
        .string()
        .min(1)
        .max(255)
        .optional()
        .describe("Id of the key that the Secret contains; omitted if it contains none.")
        .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] }),
      mayIssue: z
        .boolean()
        .describe("Whether a key may be issued. Set it only if the caller can write the key to the Secret."),
    })
    .optional()
    .describe("State of the Secret. Required for kind `ApiKey`."),
  dryRun: DryRun,
  onlyIfFence: OnlyIfFence,
});
type Body = z.output<typeof Body>;

const anyValue = (what: string) => z.unknown().optional().describe(what);

const Data = z.strictObject({
  outcome: z
    .enum(["created", "updated", "unchanged"])
    .describe("Outcome of the call, or on a dry run, the outcome that it would have.")
    .meta({ examples: ["updated"] }),
  ids: StoredIds,
  digest: Digest.optional().describe(
    "Digest of the object, as in `managed.listDigests`; only for roles, namespaces and overrides.",
  ),
  changes: z
    .array(
      z.strictObject({
        path: z
          .string()
          .describe("Path of the member.")
          .meta({ examples: ["policy.rules[0].ratelimits[0].limit"] }),
        old: anyValue("Previous value; omitted if there was none.").meta({ examples: [10] }),
        new: anyValue("New value; omitted if the member is removed.").meta({ examples: [20] }),
      }),
    )
    .describe("Differences between the stored objects and the manifest, at most about 200."),
  warnings: z
    .array(
      z.strictObject({
        path: z
          .string()
          .describe("Path in the manifest.")
          .meta({ examples: ["spec.rules[1]"] }),
        message: z
          .string()
          .describe("Description of what is probably unintended.")
          .meta({ examples: ["never matches, because rule 0 matches every request before it"] }),
      }),
    )
    .describe("Warnings about parts of a policy that are probably unintended."),
  policy: PolicyStatus.optional().describe(
    "Stored policy as in `policies.listStatus`; only for policies, not on a dry run.",
  ),
  key: z
    .strictObject({
      issued: NewKey.optional().describe("The issued key. Its secret is returned only here."),
      successorOf: z
        .string()
        .optional()
        .describe("Id of the key that the issued one replaces.")
        .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] }),
      needsIssue: z.boolean().describe("Whether a key is due but was not issued, because `mayIssue` was false."),
      nextRotation: unixMs("Time of the next rotation, Unix milliseconds.").optional(),
      nextMs: z
        .number()
        .optional()
        .describe("Time until the next call has something to change, in ms.")
        .meta({ examples: [3_600_000] }),
      hasEnded: z.boolean().describe("Whether `spec.expires` has passed."),
    })
    .optional()
    .describe("State of the key; only for kind `ApiKey`."),
});
type Data = z.input<typeof Data>;

const required = TO_APPLY;

export const applyObject = defineProcedure({
  path: "managed.applyObject",
  effect: "change",
  summary: "Apply a manifest to its stored objects",
  description:
    "Makes the stored objects of one manifest match its spec, in one transaction. Applying the same manifest again changes nothing. The headers `Postern-Manager`, `Postern-Adopt` and `Postern-Release` have no effect.",
  permissions: required,
  errors: [
    "api_not_found",
    "ratelimit_namespace_not_found",
    "managed_by_manifest",
    "managed_exists",
    "unmanaged_exists",
    "not_managed",
    "reference_not_allowed",
    "role_already_exists",
    "role_not_found",
    "stale_policy_generation",
    "stale_leader",
  ],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { manager, kind, dryRun } = body;
  const { workspaceId } = caller;
  const apply = APPLY[kind](body);
  requireKind(manager, kind);
  const { digest, ...applied } = await inManifestTransaction(call, body, async (transaction) => {
    const done = await apply(transaction);
    const digested = DIGESTED[kind];
    return { ...done, digest: digested && (await findDigest(transaction.tx, digested, { workspaceId, manager })) };
  });
  const { outcome, changes, warnings = [] } = applied;
  const answer = { outcome, changes: [...changes], warnings: [...warnings] };
  // A dry run rolls back the objects that it creates, so their ids are omitted.
  if (dryRun) return { ...answer, ids: outcome === "created" ? {} : applied.ids };
  const { key } = applied;
  const stored = {
    ...answer,
    ids: applied.ids,
    ...(digest === undefined ? {} : { digest }),
    ...(key === undefined ? {} : { key: keyOut(key) }),
  };
  const { policyId } = applied.ids;
  const policy = policyId === undefined ? undefined : await findPolicyStatus(deps, { workspaceId, policyId });
  return policy === undefined ? stored : { ...stored, policy };
}

const keyOut = ({ keyId: _, ...key }: KeyOutcome): NonNullable<Data["key"]> => key;

const DIGESTED: Readonly<Partial<Record<AppliedKind, DigestedKind>>> = {
  Role: "role",
  RatelimitNamespace: "namespace",
  RatelimitOverride: "override",
};

type Apply = (transaction: Transaction) => Promise<Applied & { readonly key?: KeyOutcome }>;

/** Functions by kind: each validates the spec of a manifest, and returns the function that applies it. */
const APPLY: Readonly<Record<AppliedKind, (body: Body) => Apply>> = {
  Role: (body) => applying(body, RoleSpec, applyRole),
  RatelimitNamespace: (body) => applying(body, RatelimitNamespaceSpec, applyNamespace),
  RatelimitOverride: (body) => applying(body, RatelimitOverrideSpec, applyOverride),
  ApiKey: ({ secret, ...body }) => {
    if (secret === undefined) throw invalidField("body.secret", "is required for the kind ApiKey");
    return applying(body, ApiKeySpec, (transaction, desired) => applyApiKey(transaction, { ...desired, secret }));
  },
  ApiKeyPolicy: (body) => applying(body, ApiKeyPolicySpec, applyPolicy),
};

/** @throws PublicError 400 with the path of each invalid field. */
function applying<Spec extends object, Result extends Applied>(
  { spec: given, ...body }: Omit<Body, "secret">,
  schema: z.ZodType<Spec>,
  apply: (transaction: Transaction, desired: Application<Spec>) => Promise<Result>,
): (transaction: Transaction) => Promise<Result> {
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    const errors = problemsOf(parsed.error).map(({ location, message }) => ({
      location: location === "manifest" ? "body.spec" : `body.spec.${location}`,
      message,
    }));
    throw new PublicError("invalid_input", errors[0]?.message ?? "the spec is invalid", { errors });
  }
  const spec = parsed.data;
  const { adopt: inSpec } = spec as { readonly adopt?: Body["adopt"] };
  const { manager, uid, generation, mayReferTo, onlyIfManaged, adopt = inSpec } = body;
  return (transaction) => apply(transaction, { manager, spec, uid, generation, mayReferTo, onlyIfManaged, adopt });
}
