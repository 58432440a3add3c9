import type { PolicyRule } from "../../core/policies/policy.ts";

export interface PlainRequest {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Returns the index of the first rule that matches a request, −1 if none does. It states the definition in the plainest way: one regular
 * expression per rule, one rule after the other. Expects a path that needs no normalization. A lenient app ignores letter case and serves
 * the rest of a path when it is missing.
 */
export function slowMatch(
  rules: readonly PolicyRule[],
  { method, path, host, headers }: PlainRequest,
  { isLenient = false } = {},
): number {
  return rules.findIndex(
    (rule) =>
      (rule.methods === undefined || rule.methods.some((one) => one === method)) &&
      (rule.path === undefined || patternOf(rule.path, isLenient).test(path)) &&
      (rule.hosts === undefined || rule.hosts.some((name) => hostPattern(name).test(host))) &&
      (rule.headers ?? []).every(({ name, exact }) => {
        const value = headers[name.toLowerCase()];
        return value !== undefined && (exact === undefined || value === exact);
      }),
  );
}

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

function patternOf(path: NonNullable<PolicyRule["path"]>, isLenient: boolean): RegExp {
  const flags = isLenient ? "i" : "";
  if ("exact" in path) return new RegExp(`^${literal(path.exact)}$`, flags);
  if ("prefix" in path) return new RegExp(`^${literal(path.prefix.replace(/\/+$/, ""))}(/.*)?$`, flags);
  const parts = path.template.split(/(\/\{\w+(?:\.\.\.)?\})(?=\/|$)/);
  const rest = isLenient ? "(/.*)?" : "/.*";
  const pattern = parts.map((part, at) => (at % 2 === 0 ? literal(part) : part.endsWith("...}") ? rest : "/[^/]+"));
  return new RegExp(`^${pattern.join("")}$`, flags);
}

const hostPattern = (name: string): RegExp =>
  name.startsWith("*.") ? new RegExp(`^.+\\.${literal(name.slice(2))}$`) : new RegExp(`^${literal(name)}$`);

/** Returns a path as two kinds of apps read it: after decoding, without a trailing slash; and as leniently as any app might. */
export const readingsOf = (path: string): string[] => [
  decoded(path).replace(/(?<=.)\/$/, ""),
  tidied(decoded(decoded(path)).normalize("NFKC")),
];

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Removes path parameters, dot segments and empty segments, and spaces and dots at the ends of segments. */
function tidied(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split(/[/\\]/)) {
    const name = segment.split(";", 1)[0]?.trim() ?? "";
    if (name === "..") kept.pop();
    else if (name.replace(/[. ]+$/, "") !== "") kept.push(name.replace(/[. ]+$/, ""));
  }
  return `/${kept.join("/")}`;
}
