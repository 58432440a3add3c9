import * as z from "zod";
import type { DiscoveredKeys } from "./discovered-keys.ts";
import { listOf, Text } from "./documents.ts";
import { type KubeObject, nameOf } from "./kubernetes.ts";
import { addRule, BY_HOST, headerMatch, type Match, omitRule, omitRulesOf, readLimits } from "./policy-rules.ts";

/*
 * Drafts rules from the RateLimitPolicies of Kuadrant: `counters` become the values that a limit counts by, and `when` becomes its
 * conditions.
 */

const Limit = z.looseObject({
  rates: listOf(z.looseObject({ limit: Text, window: Text })),
  counters: listOf(z.looseObject({ expression: Text })),
  when: listOf(z.looseObject({ predicate: Text })),
});
const Limits = z.record(z.string(), Limit).nullish();
const Scope = z.looseObject({ limits: Limits, when: listOf(z.unknown()) });
const RateLimitPolicy = z.looseObject({
  spec: Scope.extend({ defaults: Scope.nullish(), overrides: Scope.nullish() }),
});

export function findKuadrantRules(objects: readonly KubeObject[], discovered: DiscoveredKeys): void {
  for (const object of objects.filter(({ kind }) => kind === "RateLimitPolicy")) {
    const what = `RateLimitPolicy ${nameOf(object)}`;
    const spec = readLimits(RateLimitPolicy, object, what, discovered)?.spec;
    for (const scope of [spec?.overrides, spec, spec?.defaults]) {
      for (const [name, limit] of Object.entries(scope?.limits ?? {})) {
        const from = `${what}, limit ${name}`;
        if ((scope?.when ?? []).length > 0) omitRule(discovered, from, "write the policy's `when` as a match");
        else findInLimit(from, name, limit, discovered);
      }
    }
  }
  omitRulesOf(["PlanPolicy"], objects, discovered, "write its limits as namespaces and overrides");
}

function findInLimit(
  from: string,
  name: string,
  { rates, counters, when }: z.output<typeof Limit>,
  discovered: DiscoveredKeys,
): void {
  const match: Match = {};
  for (const { predicate = "" } of when) {
    for (const condition of predicate.split("&&")) {
      if (addCondition(match, condition.trim())) continue;
      omitRule(discovered, from, `the predicate ${condition.trim()} has no counterpart`);
      return;
    }
  }
  const by: string[] = [];
  for (const { expression = "" } of counters) {
    const value = countedBy(expression);
    if (value === undefined) {
      omitRule(discovered, from, `the counter ${expression} has no counterpart`);
      return;
    }
    by.push(value);
  }
  const access = by.includes("identity") || discovered.keys.length > 0 ? "Key" : "Anonymous";
  const limits = rates.map(({ limit, window = "" }, at) => ({
    name: rates.length === 1 ? name : `${name}-${at + 1}`,
    by: by.length === 0 ? BY_HOST : by,
    limit: Number(limit),
    duration: window,
  }));
  addRule(discovered, from, { match, access, limits });
}

const COUNTERS: Readonly<Record<string, string>> = {
  "auth.identity.userid": "identity",
  "auth.identity.username": "identity",
  "source.address": "address",
  "source.remote_address": "address",
  "request.host": "host",
  "request.method": "method",
};

const HEADER = /^request\.headers\[(['"])([\w-]+)\1\]$/;

function countedBy(expression: string): string | undefined {
  const header = HEADER.exec(expression)?.[2];
  return header === undefined ? COUNTERS[expression] : `header.${header}`;
}

/**
 * Adds a condition to the match. Returns false if the condition has no counterpart, or if the match already has a condition of the same
 * kind.
 */
function addCondition(match: Match, condition: string): boolean {
  const [, prefix] = /^request\.(?:url_)?path\.startsWith\(['"]([^'"]+)['"]\)$/.exec(condition) ?? [];
  const [, subject = "", , value = ""] = /^(\S+) *== *(['"])([^'"]*)\2$/.exec(condition) ?? [];
  const header = HEADER.exec(subject)?.[2];
  if (prefix !== undefined && match.path === undefined) match.path = { prefix };
  else if (/^request\.(?:url_)?path$/.test(subject) && match.path === undefined) match.path = { exact: value };
  else if (subject === "request.method" && match.methods === undefined) match.methods = [value as "GET"];
  else if (subject === "request.host" && match.hosts === undefined) match.hosts = [value];
  else if (header !== undefined) match.headers = [...(match.headers ?? []), headerMatch(header, value)];
  else return false;
  return true;
}
