import type { PolicyRule } from "../../core/policies/policy.ts";

export interface PlainRequest {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Returns the index of the first rule that matches a request, −1 if none does. It states the definition in the plainest way: one regular
 * expression per rule, one rule after the other. Expects a path that needs no normalization.
 */
export function slowMatch(rules: readonly PolicyRule[], { method, path, host, headers }: PlainRequest): number {
  return rules.findIndex(
    (rule) =>
      (rule.methods === undefined || rule.methods.some((one) => one === method)) &&
      (rule.path === undefined || patternOf(rule.path).test(path)) &&
      (rule.hosts === undefined || rule.hosts.some((name) => hostPattern(name).test(host))) &&
      (rule.headers ?? []).every(({ name, exact }) => {
        const value = headers[name.toLowerCase()];
        return value !== undefined && (exact === undefined || value === exact);
      }),
  );
}

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

function patternOf(path: NonNullable<PolicyRule["path"]>): RegExp {
  if ("exact" in path) return new RegExp(`^${literal(path.exact)}$`);
  if ("prefix" in path) return new RegExp(`^${literal(path.prefix.replace(/\/+$/, ""))}(/.*)?$`);
  const parts = path.template.split(/(\/\{\w+(?:\.\.\.)?\})(?=\/|$)/);
  const pattern = parts.map((part, at) => (at % 2 === 0 ? literal(part) : part.endsWith("...}") ? "/.*" : "/[^/]+"));
  return new RegExp(`^${pattern.join("")}$`);
}

const hostPattern = (name: string): RegExp =>
  name.startsWith("*.") ? new RegExp(`^.+\\.${literal(name.slice(2))}$`) : new RegExp(`^${literal(name)}$`);
