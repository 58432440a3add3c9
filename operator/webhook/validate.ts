import * as z from "zod";
import { inspectManifest } from "../../core/manifests/check.ts";
import { queryProblem } from "../../core/manifests/compile-policy.ts";
import { API_VERSION } from "../../core/manifests/index.ts";
import { ADMITTED, type Admission, type AdmissionRequest } from "./review.ts";

const SHOWN_MAX = 5;
/**
 * Maximum number of rules, as in the schemas. Further rules are not checked, because any client in the cluster can call the webhook with an
 * object that violates the schema.
 */
const RULES_MAX = 256;
const QUERY_CHARS_MAX = 1_000;

/** Maximum number of fields in a spec that is checked for warnings; the schema has fewer. */
const FIELDS_MAX = 100;

const Policy = z.object({ spec: z.object({ rules: z.array(z.unknown()) }) });
const Rule = z.object({ permissions: z.string().max(QUERY_CHARS_MAX) });

/**
 * Rejects an ApiKeyPolicy with invalid permission queries, which its CRD schema cannot detect. Warns about rules that are probably not what
 * their author meant. Checks nothing else: the API server has already validated the object against the installed CRD, which may be newer
 * than this operator.
 */
export function validatePolicy({ kind, object }: AdmissionRequest): Admission {
  if (kind.kind !== "ApiKeyPolicy") return ADMITTED;
  const spec = Policy.safeParse(object).data?.spec;
  const rules = spec?.rules.slice(0, RULES_MAX) ?? [];
  const problems = rules.flatMap((rule, i) => {
    const query = Rule.safeParse(rule).data?.permissions;
    const problem = query === undefined ? undefined : queryProblem(query);
    return problem === undefined ? [] : [`spec.rules[${i}].permissions: ${problem}`];
  });
  if (problems.length === 0)
    return spec === undefined ? ADMITTED : { allowed: true, ...warningsOf(object as { spec: typeof spec }) };
  const more = problems.length > SHOWN_MAX ? ` (and ${problems.length - SHOWN_MAX} more)` : "";
  return { allowed: false, message: `${problems.slice(0, SHOWN_MAX).join("; ")}${more}` };
}

/** A spec that has fields of a later release gets no warnings. */
function warningsOf({ spec }: { spec: { readonly rules: readonly unknown[] } }): { warnings?: string[] } {
  if (spec.rules.length > RULES_MAX || Object.keys(spec).length > FIELDS_MAX) return {};
  const { warnings } = inspectManifest({
    apiVersion: API_VERSION,
    kind: "ApiKeyPolicy",
    metadata: { name: "x" },
    spec,
  });
  if (warnings.length === 0) return {};
  return { warnings: warnings.slice(0, SHOWN_MAX).map(({ location, message }) => `${location}: ${message}`) };
}
