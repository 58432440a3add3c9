import { compileRules, type RequestToMatch } from "../../core/policies/match-rule.ts";
import type { PolicyRule, RuleRatelimit } from "../../core/policies/policy.ts";
import type { Environment } from "./environment.ts";
import { STRICT, untilPasses } from "./gate-load.ts";
import { median } from "./measure.ts";
import { compareGates, contestant, type Figure, type Section, type SectionOptions, toFigures } from "./section.ts";

const RULES = 256;
/** Matches per sample: long enough for the clock, short enough that the machine is equally fast for both policies. */
const MATCHES = 50_000;

/** What matching costs with many rules, and what a limit by address costs. */
export const rules: Section = async (environment, options) => [
  ...CASES.map((each) => matching(each, options)),
  ...(await byAddress(environment, options)),
];

interface Case {
  readonly name: string;
  readonly rule: (number: number) => Pick<PolicyRule, "path" | "hosts">;
  readonly request: (number: number) => Pick<RequestToMatch, "target" | "host">;
}

const CASES: readonly Case[] = [
  {
    name: "prefixes",
    rule: (n) => ({ path: { prefix: `/service-${n}` } }),
    request: (n) => ({ target: `/service-${n}/items/7`, host: "api.example.com" }),
  },
  {
    name: "templates",
    rule: (n) => ({ path: { template: `/v${n}/{a}/items/{b}` } }),
    request: (n) => ({ target: `/v${n}/shop/items/7`, host: "api.example.com" }),
  },
  {
    name: "hosts on one path",
    rule: (n) => ({ path: { prefix: "/orders" }, hosts: [`t${n}.example.com`] }),
    request: (n) => ({ target: "/orders/7", host: `t${n}.example.com` }),
  },
];

/**
 * Matches the same requests, one for each of the 256 rules, with a policy of all rules and with a policy of the last one. Each rule requires
 * another permission, so that near matches are checked.
 */
function matching({ name, rule, request }: Case, { rounds, progress }: SectionOptions): Figure {
  const numbers = Array.from({ length: RULES }, (_, number) => number);
  const requests = numbers.map((n): RequestToMatch => ({ method: "GET", headers: [], ...request(n) }));
  const all = numbers.map(
    (n): PolicyRule => ({ access: "Key", creditCost: 1, ...rule(n), permissions: `p${n}`, ratelimits: [] }),
  );
  const many = sampler(all, requests);
  const one = sampler(all.slice(-1), requests);
  if (many.matched() !== RULES) throw new Error(`${name}: ${many.matched()} of ${RULES} requests match their rule`);
  const samples = { many: [] as number[], one: [] as number[] };
  for (const each of [many, one]) each.micros();
  for (let round = 1; round <= rounds; round += 1) {
    progress(`rules: ${name}, round ${round} of ${rounds}`);
    for (let turn = 0; turn < 10; turn += 1) {
      if (turn % 2 === 0) samples.many.push(many.micros());
      samples.one.push(one.micros());
      if (turn % 2 === 1) samples.many.push(many.micros());
    }
  }
  const more = samples.many.map((micros, at) => micros - (samples.one[at] ?? Number.NaN));
  const ratios = samples.many.map((micros, at) => micros / (samples.one[at] ?? Number.NaN));
  return {
    name: `match: ${RULES} ${name}, more than 1`,
    unit: "µs",
    value: median(more),
    max: 2,
    detail: [
      `${median(samples.many).toFixed(2)} µs a match against ${median(samples.one).toFixed(2)}`,
      `ratio ${median(ratios).toFixed(2)}`,
      `pairs ${Math.min(...more).toFixed(2)}–${Math.max(...more).toFixed(2)} µs`,
    ].join(", "),
  };
}

function sampler(policyRules: PolicyRule[], requests: readonly RequestToMatch[]) {
  const matcher = compileRules({ rules: policyRules, allowPaths: [] });
  /** Number of the rule that the request matches; −1 for the implicit rule. */
  const ruleOf = (request: RequestToMatch): number => {
    const matched = matcher.match(request);
    if ("refused" in matched) throw new Error(matched.refused);
    return matched.rule.index;
  };
  return {
    matched: () => requests.filter((request, number) => ruleOf(request) === number).length,
    micros: () => {
      const startedAt = performance.now();
      for (let turn = 0; turn < MATCHES; turn += 1) ruleOf(requests[turn % requests.length] as RequestToMatch);
      return (1000 * (performance.now() - startedAt)) / MATCHES;
    },
  };
}

/** CPU of a gate per request with a strict limit by the client's address, compared with one by key, whose charges the gate caches. */
async function byAddress(environment: Environment, options: SectionOptions): Promise<Figure[]> {
  const keys = await environment.keys(1);
  const headers = { authorization: `Bearer ${keys[0]?.key}` };
  const { identifier: _, ...limit } = STRICT;
  const gates = [];
  for (const [name, ratelimit] of [
    ["by-key", STRICT],
    ["by-address", { ...limit, by: ["address"] }],
  ] as const) {
    const policyId = await environment.createPolicy(name, [ratelimit as RuleRatelimit]);
    gates.push(await environment.startSidecar(policyId));
  }
  const [key, address] = gates;
  if (key === undefined || address === undefined) throw new Error("both gates were started");
  for (const { url } of gates) await untilPasses(url, headers);
  const as = contestant(options, ({ url }) => ({ url: `${url}/orders/1`, headers }));
  const pair = { contestant: as("strict limit by address", address), baseline: as("by key", key) };
  const results = await compareGates(environment, options, "rules", [pair]);
  for (const gate of gates) await gate.stop();
  return toFigures(results, [1.03]);
}
