import * as z from "zod";
import type { DiscoveredKeys } from "./discovered-keys.ts";
import { listOf, Text } from "./documents.ts";
import { type KubeObject, nameOf } from "./kubernetes.ts";
import { addRule, BY_HOST, headerMatch, type Match, omitRule, readLimits, UNITS } from "./policy-rules.ts";

/*
 * Drafts rules from the BackendTrafficPolicies of Envoy Gateway: selectors of type `Exact` become conditions of a rule, and those of type
 * `Distinct` become the values that its limit counts by.
 */

const HeaderSelector = z.looseObject({ name: Text, value: Text, type: Text, invert: z.unknown().optional() });
const Selector = z.looseObject({
  headers: listOf(HeaderSelector),
  sourceCIDR: z.looseObject({ value: Text, type: Text, invert: z.unknown().optional() }).nullish(),
});
type Selector = z.output<typeof Selector>;
const LimitRule = z.looseObject({
  clientSelectors: listOf(Selector),
  limit: z.looseObject({ requests: Text, unit: Text }),
});
const Rules = z.looseObject({ rules: listOf(LimitRule) }).nullish();
const TrafficPolicy = z.looseObject({
  spec: z.looseObject({ rateLimit: z.looseObject({ global: Rules, local: Rules }).nullish() }),
});

export function findEnvoyGatewayRules(objects: readonly KubeObject[], discovered: DiscoveredKeys): void {
  const access = discovered.keys.length > 0 ? "Key" : "Anonymous";
  for (const object of objects.filter(({ kind }) => kind === "BackendTrafficPolicy")) {
    const what = `BackendTrafficPolicy ${nameOf(object)}`;
    const rateLimit = readLimits(TrafficPolicy, object, what, discovered)?.spec.rateLimit;
    const rules = [rateLimit?.global, rateLimit?.local].flatMap((group) => group?.rules ?? []);
    for (const [index, { clientSelectors, limit }] of rules.entries()) {
      const from = `${what}, rule ${index + 1}`;
      const duration = UNITS[(limit.unit ?? "").toLowerCase()] ?? "";
      // A request is limited if any of the selectors matches it, so each selector becomes a rule.
      for (const selector of clientSelectors.length === 0 ? [EVERY_CLIENT] : clientSelectors) {
        const read = readSelector(selector);
        if (typeof read === "string") omitRule(discovered, from, read);
        else {
          const counted = { name: `rule-${index + 1}`, by: read.by, limit: Number(limit.requests), duration };
          addRule(discovered, from, { match: read.match, access, limits: [counted] });
        }
      }
    }
  }
}

const EVERY_CLIENT: Selector = { headers: [], sourceCIDR: undefined };
const KNOWN_MEMBERS = new Set(["headers", "sourceCIDR"]);

/** Returns the conditions of a selector and the values that it counts by, or the reason why they have no counterpart in a policy. */
function readSelector(selector: Selector): { readonly match: Match; readonly by: string[] } | string {
  const by: string[] = [];
  const headers: ReturnType<typeof headerMatch>[] = [];
  const other = Object.keys(selector).find((member) => !KNOWN_MEMBERS.has(member));
  if (other !== undefined) return `the selector ${other} has no counterpart`;
  for (const { name = "", value, type = "Exact", invert } of selector.headers) {
    if (isSet(invert)) return "a rule cannot invert the condition on a header";
    if (type === "RegularExpression") return "a rule compares headers with exact values";
    headers.push(headerMatch(name, type === "Distinct" ? undefined : value));
    if (type === "Distinct") by.push(`header.${name}`);
  }
  const { sourceCIDR: source } = selector;
  if (source !== undefined && source !== null) {
    const isEveryAddress = source.value === "0.0.0.0/0" || source.value === "::/0";
    if (source.type !== "Distinct" || !isEveryAddress || isSet(source.invert)) {
      return "a rule cannot select clients by address, only count them: sourceCIDR 0.0.0.0/0 with type Distinct";
    }
    by.push("address");
  }
  return { match: headers.length === 0 ? {} : { headers }, by: by.length === 0 ? BY_HOST : by };
}

const isSet = (flag: unknown): boolean => String(flag) === "true";
