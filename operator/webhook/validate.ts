import * as z from "zod";
import { queryProblem } from "../../core/manifests/compile-policy.ts";
import { ADMITTED, type Admission, type AdmissionRequest } from "./review.ts";

const SHOWN_MAX = 5;
/**
 * Maximum number of rules, as in the schemas. Further rules are ignored, because any client in the cluster can call the webhook with an
 * object that violates the schema.
 */
const RULES_MAX = 256;
const QUERY_CHARS_MAX = 1_000;

const Policy = z.object({ spec: z.object({ rules: z.array(z.unknown()) }) });
const Rule = z.object({ permissions: z.string().max(QUERY_CHARS_MAX) });

/**
 * Rejects an ApiKeyPolicy with invalid permission queries, which its CRD schema cannot detect. Checks nothing else, because the API server
 * has already validated the rest against the installed CRD, which may be newer than this operator.
 */
export function validatePolicy({ kind, object }: AdmissionRequest): Admission {
  if (kind.kind !== "ApiKeyPolicy") return ADMITTED;
  const rules = Policy.safeParse(object).data?.spec.rules.slice(0, RULES_MAX) ?? [];
  const problems = rules.flatMap((rule, i) => {
    const query = Rule.safeParse(rule).data?.permissions;
    const problem = query === undefined ? undefined : queryProblem(query);
    return problem === undefined ? [] : [`spec.rules[${i}].permissions: ${problem}`];
  });
  if (problems.length === 0) return ADMITTED;
  const more = problems.length > SHOWN_MAX ? ` (and ${problems.length - SHOWN_MAX} more)` : "";
  return { allowed: false, message: `${problems.slice(0, SHOWN_MAX).join("; ")}${more}` };
}
