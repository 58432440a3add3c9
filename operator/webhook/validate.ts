import { checkManifest, type ManifestProblem } from "../../core/manifests/check.ts";
import { ADMITTED, type Admission, type AdmissionRequest } from "./review.ts";

const SHOWN_MAX = 5;

/**
 * Refuses an ApiKeyPolicy with what its CRD's schema cannot express: permission queries that do not parse, and paths that can never
 * match. Only such problems count here. What the schema decides the API server has decided already, by the CRD that is installed, which may be of a later
 * release than this operator.
 */
export function validatePolicy({ kind, object }: AdmissionRequest): Admission {
  if (kind.kind !== "ApiKeyPolicy") return ADMITTED;
  const problems = checkManifest(object).filter(isOfTheRules);
  if (problems.length === 0) return ADMITTED;
  const shown = problems.slice(0, SHOWN_MAX).map(({ location, message }) => `${location}: ${message}`);
  const more = problems.length > SHOWN_MAX ? ` (and ${problems.length - SHOWN_MAX} more)` : "";
  return { allowed: false, message: `${shown.join("; ")}${more}` };
}

const isOfTheRules = ({ location }: ManifestProblem): boolean => /^spec\.rules\[\d+\]\.permissions$/.test(location);
