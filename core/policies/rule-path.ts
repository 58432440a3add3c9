import { canonicalRulePath } from "./check-path.ts";
import type { PathAllowance, PathMatch } from "./policy.ts";

/*
 * The path of a rule as a list of segments, in the canonical spelling of check-path.ts.
 *
 *   /orders/{order}/refund   ["orders", parameter, "refund"], ends "here"
 *   /files/{path...}         ["files"], ends "below"
 *   prefix /orders           ["orders"], ends "here or below"
 */

/** Marks a segment that is a parameter. */
export const PARAMETER = Symbol("parameter");
export type RuleSegment = string | typeof PARAMETER;

export interface RulePath {
  readonly segments: readonly RuleSegment[];
  /** Which paths the rule matches: exactly the path of its segments, only longer paths, or both. */
  readonly ends: "here" | "below" | "hereOrBelow";
  /** Index of each parameter's segment. `isRest`: the parameter is `{name...}`, which takes the rest of the path. */
  readonly parameters: ReadonlyMap<string, { readonly at: number; readonly isRest: boolean }>;
}

const EVERY_PATH: RulePath = { segments: [], ends: "hereOrBelow", parameters: new Map() };

/** Matches a parameter, which is always a complete segment. */
const A_PARAMETER = /^\{([A-Za-z_][A-Za-z0-9_]*)(\.\.\.)?\}$/;

/** Error for a template that no request can match, or with braces that do not enclose a parameter. The message says what is expected. */
export class TemplateError extends Error {
  override name = "TemplateError";
}

/** Parses the path of a rule. A path that no request can have is kept unchanged, so the rule never matches. Throws `TemplateError`. */
export function parseRulePath(match: PathMatch | undefined, allow: readonly PathAllowance[]): RulePath {
  if (match === undefined) return EVERY_PATH;
  if ("exact" in match) {
    return { segments: segmentsOf(canonical(match.exact, allow)), ends: "here", parameters: new Map() };
  }
  if ("prefix" in match) {
    const checked = canonicalRulePath(match.prefix, allow);
    const prefix = "path" in checked ? checked.path.replace(/\/+$/, "") : match.prefix;
    return { segments: prefix === "" ? [] : segmentsOf(prefix), ends: "hereOrBelow", parameters: new Map() };
  }
  return parseTemplate(match.template, allow);
}

export function parseTemplate(template: string, allow: readonly PathAllowance[]): RulePath {
  const parameters = new Map<string, { at: number; isRest: boolean }>();
  const segments: RuleSegment[] = [];
  const texts = segmentsOf(template);
  let ends: RulePath["ends"] = "here";
  for (const [at, text] of texts.entries()) {
    const [, name, rest] = A_PARAMETER.exec(text) ?? [];
    if (name === undefined) {
      const wrong = /[*{}]/.exec(text);
      if (wrong !== null) throw new TemplateError(wrongSegment(text));
      segments.push(segmentsOf(canonical(`/${text}`, allow))[0] ?? "");
      continue;
    }
    // A parameter name that occurs twice refers to its first segment.
    if (!parameters.has(name)) parameters.set(name, { at, isRest: rest !== undefined });
    if (rest === undefined) segments.push(PARAMETER);
    else if (at < texts.length - 1) throw new TemplateError(`{${name}...} must be the last segment`);
    else ends = "below";
  }
  return { segments, ends, parameters };
}

const wrongSegment = (text: string): string =>
  `a parameter takes a whole segment, such as {order} or {path...}; write %7B, %7D or %2A for a literal {, } or * in ${JSON.stringify(text)}`;

function canonical(path: string, allow: readonly PathAllowance[]): string {
  const checked = canonicalRulePath(path, allow);
  return "path" in checked ? checked.path : path;
}

/** Splits a path, which begins with a slash, into its segments. */
export const segmentsOf = (path: string): string[] => path.slice(1).split("/");

/**
 * Returns the value of a parameter in a path that the rule matches: a segment without its path parameters (`;…`), or the rest of the path.
 */
export function parameterIn(path: string, { parameters }: RulePath, name: string): string {
  const parameter = parameters.get(name);
  if (parameter === undefined) return "";
  let start = 1;
  for (let skipped = 0; skipped < parameter.at; skipped++) start = path.indexOf("/", start) + 1;
  if (parameter.isRest) return path.slice(start);
  const end = path.indexOf("/", start);
  const segment = path.slice(start, end === -1 ? path.length : end);
  const semicolon = segment.indexOf(";");
  return semicolon === -1 ? segment : segment.slice(0, semicolon);
}
