import type * as z from "zod";
import { ManifestRule } from "../../core/manifests/policy-rule.ts";
import type { DiscoveredKeys, RuleDraft } from "./discovered-keys.ts";
import { readObject, WrongImport } from "./documents.ts";
import { type KubeObject, nameOf } from "./kubernetes.ts";

/*
 * Drafts of policy rules from the limits and denials of another system. Each system's reader finds the requests to which a limit or denial
 * applies, and the values that a limit counts by. This file has the code that all readers share.
 */

export type Match = NonNullable<RuleDraft["match"]>;
export type Limit = NonNullable<RuleDraft["ratelimits"]>[number];

/** Counts all requests of a host together, which is the closest that a policy has to a counter of all requests. */
export const BY_HOST = ["host"];

/** Duration of each time unit that other systems use. A month has 30 days, a year 365. */
export const UNITS: Readonly<Record<string, string>> = {
  second: "1s",
  minute: "1m",
  hour: "1h",
  day: "24h",
  month: "720h",
  year: "8760h",
};

/** Adds a rule or, if the limit or denial cannot be written as a valid rule, a note that says why. */
export function addRule(
  discovered: DiscoveredKeys,
  from: string,
  { match, access, limits }: { match: Match; access: "Key" | "Anonymous" | "Deny"; limits: readonly Limit[] },
): void {
  const rule: RuleDraft = {
    ...(Object.keys(match).length === 0 ? {} : { match }),
    ...(access === "Key" ? {} : { access }),
    ...(limits.length === 0 ? {} : { ratelimits: [...limits] }),
  };
  const [issue] = ManifestRule.safeParse(rule).error?.issues ?? [];
  if (issue !== undefined) {
    omitRule(discovered, from, `${issue.path.join(".")}: ${issue.message}`);
    return;
  }
  discovered.rules.push({ from, rule });
  const by = limits.flatMap((limit) => limit.by ?? []);
  if (by.includes("address")) discovered.note("limits by address require spec.clientAddress in the policy");
  if (by.includes("host")) discovered.note("limits by host replace limits of all requests together");
}

/** Reads an object that may have limits. If the object is invalid, adds a note instead of failing, so that the keys are still imported. */
export function readLimits<S extends z.ZodType>(
  schema: S,
  value: unknown,
  what: string,
  discovered: DiscoveredKeys,
): z.output<S> | undefined {
  try {
    return readObject(schema, value, what);
  } catch (error) {
    if (!(error instanceof WrongImport)) throw error;
    discovered.note(`limits are not imported as rules: ${error.message}`);
    return undefined;
  }
}

export const omitRule = (discovered: DiscoveredKeys, from: string, why: string): void =>
  discovered.note(`${from} is not imported as a rule: ${why}`);

/** For each object of these kinds, adds a note that the import does not read the object's limits or denials. */
export function omitRulesOf(
  kinds: readonly string[],
  objects: readonly KubeObject[],
  discovered: DiscoveredKeys,
  why: string,
): void {
  for (const object of objects) {
    if (kinds.includes(object.kind)) omitRule(discovered, `${object.kind} ${nameOf(object)}`, why);
  }
}

/** Returns the condition on a header: its value, or its presence. */
export const headerMatch = (name: string, exact?: string): NonNullable<Match["headers"]>[number] =>
  exact === undefined ? { name, present: true } : { name, exact };
