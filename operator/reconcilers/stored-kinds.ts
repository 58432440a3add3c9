import type * as z from "zod";
import type { Kind } from "../../core/manifests/index.ts";
import { RatelimitNamespaceSpec } from "../../core/manifests/ratelimit-namespace.ts";
import { RatelimitOverrideSpec } from "../../core/manifests/ratelimit-override.ts";
import { RoleSpec } from "../../core/manifests/role.ts";
import type { ManifestObject } from "../source/contract.ts";
import { applyManifest, deleteManifest } from "./apply-manifest.ts";
import { competitorsOf } from "./claims.ts";
import { type Context, managerOf } from "./context.ts";
import { mayReferTo, refusalOf } from "./namespace-ref.ts";
import { blocked, CONFLICT_REQUEUE_MS, progressing, type Result, ready, released, type Verdict } from "./plan.ts";
import { namespaceRefOf } from "./raw-spec.ts";
import type { KindSteps } from "./reconcile-object.ts";
import { deletionPolicyOf, invalid, parseSpec } from "./spec.ts";
import { ownStatus } from "./status.ts";

/* Kinds whose manifests affect only the database: Role, RatelimitNamespace and RatelimitOverride. */

interface StoredKind {
  readonly schema: z.ZodType;
  /** Noun for the stored object in status messages. */
  readonly noun: string;
  readonly sayCompetitor: (competitor: string) => string;
  /** Resolves the references to other manifests. Default: there are none. */
  readonly refer?: (object: ManifestObject, ctx: Context) => References;
}

type References =
  | { readonly verdict: Verdict }
  | {
      readonly verdict?: never;
      readonly mayReferTo: readonly string[];
      readonly claimants: readonly ManifestObject[];
    };

const STORED: Readonly<Record<Exclude<Kind, "ApiKey" | "ApiKeyPolicy">, StoredKind>> = {
  Role: {
    schema: RoleSpec,
    noun: "role",
    sayCompetitor: (competitor) =>
      `${competitor} is older and has the same spec.name. Remove one of the two objects, or change spec.name of this one.`,
  },
  RatelimitNamespace: {
    schema: RatelimitNamespaceSpec,
    noun: "rate-limit namespace",
    sayCompetitor: (competitor) =>
      `${competitor} is older and has the same spec.name. Remove one of the two objects; to share the namespace, use its allowedNamespaces.`,
  },
  RatelimitOverride: {
    schema: RatelimitOverrideSpec,
    noun: "override",
    sayCompetitor: (competitor) => `${competitor} is older and has the same identifier. Remove one of the two objects.`,
    refer: referToNamespace,
  },
};

/** Returns the steps of a kind. */
export function stepsOf(kind: keyof typeof STORED): KindSteps {
  const { schema, noun, sayCompetitor, refer } = STORED[kind];
  return {
    reconcile: async (object, ctx, ownership) => {
      const status = ownership.isOwned ? ownStatus(object) : {};
      if (object.metadata.deletionTimestamp !== undefined) {
        const verdict = await deleteManifest(object, ctx, deletionPolicyOf(object));
        return verdict === undefined ? released : { ...blocked(verdict, status), requeueAfterMs: CONFLICT_REQUEUE_MS };
      }
      const { raw, problems } = parseSpec(schema, object);
      if (problems !== undefined) return blocked(invalid(problems), status);
      const references = refer?.(object, ctx) ?? { mayReferTo: [], claimants: competitorsOf(object, ctx.source) };
      if (references.verdict !== undefined) return blocked(references.verdict, status);
      const result = await applyManifest(object, ctx, ownership, { ...references, spec: raw, sayCompetitor });
      if (result === "moved") return "again";
      if (result.verdict !== undefined) {
        return { ...blocked(result.verdict, status), requeueAfterMs: CONFLICT_REQUEUE_MS };
      }
      return storedAs(noun, result);
    },
  };
}

function storedAs(
  noun: string,
  { applied, drift }: Extract<Awaited<ReturnType<typeof applyManifest>>, { readonly verdict?: never }>,
): Result {
  const { ids, digest } = applied;
  const [id = ""] = Object.values(ids);
  return { verdict: ready(`The ${noun} is stored as ${id}.`), status: ids, digest, drift };
}

/**
 * Resolves `spec.namespaceRef`. Objects that may not refer to the namespace do not count as competitors, because they could otherwise block
 * objects that may.
 */
function referToNamespace(object: ManifestObject, ctx: Context): References {
  const { namespace } = object.metadata;
  const ref = namespaceRefOf(object);
  const target = ref && ctx.source.get("RatelimitNamespace", ref);
  if (target === undefined) {
    const which = ref === undefined ? "that is referred to" : `${ref.namespace}/${ref.name}`;
    const message = `The RatelimitNamespace ${which} does not exist. Create it, or correct spec.namespaceRef.`;
    return { verdict: progressing("DependencyNotReady", message) };
  }
  const verdict = refusalOf(target, namespace);
  if (verdict !== undefined) return { verdict };
  return {
    mayReferTo: target.metadata.namespace === namespace ? [] : [managerOf(ctx, target)],
    claimants: competitorsOf(object, ctx.source).filter(({ metadata }) => mayReferTo(target, metadata.namespace)),
  };
}
