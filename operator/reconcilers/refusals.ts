import type { FieldProblem } from "../../core/api/procedures.ts";
import type { Refusal } from "../api/client.ts";
import { ABANDON_ANNOTATION, type ManifestObject } from "../source/contract.ts";
import { type Context, LeadershipLost, managerOf } from "./context.ts";
import { withoutForeignManagers } from "./names-in-messages.ts";
import { progressing, stalled, type Verdict } from "./plan.ts";
import { invalid } from "./spec.ts";

/**
 * Returns the verdict on an API refusal that would also occur on a retry. Throws for any other refusal, such as one caused by a concurrent
 * change.
 */
export function verdictOn(
  refusal: Refusal,
  object: ManifestObject,
  ctx: Pick<Context, "cluster" | "signal" | "onStaleFence">,
): Verdict {
  const { kind, faults = [] } = refusal;
  const detail = withoutForeignManagers(refusal.detail, managerOf(ctx, object));
  switch (kind) {
    case "managed_exists":
      // Another operator is issuing a key at the same time. The next call finds that key.
      if (object.kind === "ApiKey") throw new Error(`${kind}: ${detail}`);
      return stalled("Conflict", detail);
    case "managed_by_manifest":
    case "unmanaged_exists":
    case "role_already_exists":
    case "ratelimit_namespace_already_exists":
      return stalled("Conflict", detail);
    case "invalid_input":
      return rejected(detail, faults);
    case "reference_not_allowed":
      return stalled("NotAllowed", detail);
    case "api_not_found":
    case "ratelimit_namespace_not_found":
    case "role_not_found":
      return progressing("DependencyNotReady", detail);
    case "api_has_keys":
      return stalled("HasKeys", detail);
    case "protected_resource":
      return stalled("DeleteProtected", `${detail} ${wayOut(object)}`);
    case "stale_leader":
      if (!ctx.signal.aborted) ctx.onStaleFence();
      throw new LeadershipLost(detail);
    default:
      throw new Error(`${kind}: ${detail}`);
  }
}

const wayOut = ({ kind, metadata: { namespace, name } }: ManifestObject): string =>
  `To delete the object without cleaning up its stored objects: kubectl -n ${namespace} annotate ${kind.toLowerCase()}.postern.dev ${name} ${ABANDON_ANNOTATION}=true`;

const IN_BODY = "body.";
const FAULTS_SHOWN_MAX = 5;

/** Returns the verdict on an invalid manifest, with the remedy if the api-server has an older version than this operator. */
function rejected(detail: string, faults: readonly FieldProblem[]): Verdict {
  const isOlder = faults.some(isOfLaterRelease);
  const isOfSpec = faults.length > 0 && faults.every(({ location }) => location.startsWith(`${IN_BODY}spec`));
  if (isOfSpec && !isOlder) {
    return invalid(faults.map(({ location, message }) => ({ location: location.slice(IN_BODY.length), message })));
  }
  const shown = faults.slice(0, FAULTS_SHOWN_MAX).map(({ location, message }) => `${location} ${message}`);
  const more = faults.length > FAULTS_SHOWN_MAX ? ` (and ${faults.length - FAULTS_SHOWN_MAX} more)` : "";
  const which = shown.length === 0 ? "" : ` ${shown.join("; ")}${more}.`;
  return stalled("InvalidSpec", `The API rejects the manifest: ${detail}${which}${isOlder ? ` ${OLDER_API}` : ""}`);
}

const isOfLaterRelease = ({ location, message }: FieldProblem): boolean =>
  message === "is not a known field" || location.endsWith(".formatVersion");

const OLDER_API =
  "The api-server has an older release than this operator: upgrade the api-servers first (docs/upgrades.md).";
