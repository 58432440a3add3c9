import * as z from "zod";
import { canonicalRulePath, decodePath } from "../policies/check-path.ts";
import { PathAllowance } from "../policies/policy.ts";
import { parseTemplate, TemplateError } from "../policies/rule-path.ts";
import type { Rule } from "./fields.ts";

/*
 * Paths of rules. A rule with a path that no request can have would protect no route, so it is rejected. This code finds such a path with
 * the check for request paths (policies/check-path.ts), and the Kubernetes API server finds it with the pattern and the CEL rules below.
 */

const ANY = "[0-9A-Fa-f]";
const NEXT = "%[89ABab][0-9A-Fa-f]";
/** A percent-encoded character that takes several UTF-8 bytes (RFC 3629, section 4). */
const ENCODED_BEYOND_ASCII = [
  `%([Cc][2-9A-Fa-f]|[Dd]${ANY})${NEXT}`,
  `%[Ee]0%[ABab]${ANY}${NEXT}`,
  `%[Ee][1-9A-CEFa-cef](${NEXT}){2}`,
  `%[Ee][Dd]%[89]${ANY}${NEXT}`,
  `%[Ff]0%[9ABab]${ANY}(${NEXT}){2}`,
  `%[Ff][1-3](${NEXT}){3}`,
  `%[Ff]4%8${ANY}(${NEXT}){2}`,
].join("|");

/**
 * Pattern of a rule's path. Control characters, blanks, fragments, queries and wildcards are not allowed. Percent-encoded bytes must be
 * valid UTF-8 without a zero byte.
 */
const RULE_PATH = new RegExp(`^[/]([^\\x00-\\x20\\x7f#?%*{}]|%(0[1-9A-Fa-f]|[1-7]${ANY})|${ENCODED_BEYOND_ASCII})*$`);

const PARAMETER_NAME = "[A-Za-z_][A-Za-z0-9_]*";
/** Pattern of a template: literal segments, parameters and, at the end, an optional parameter for the rest of the path. */
const TEMPLATE = new RegExp(
  `^([/](\\{${PARAMETER_NAME}\\}|([^\\x00-\\x20\\x7f#?%*{}/]|%(0[1-9A-Fa-f]|[1-7]${ANY})|${ENCODED_BEYOND_ASCII})*))*([/]\\{${PARAMETER_NAME}[.]{3}\\})?$`,
);

export const RulePath = z
  .string()
  .min(1)
  // `abort` skips the regular expression if the text is too long, because matching megabytes of text would overflow the stack.
  .max(1024, { abort: true })
  .regex(RULE_PATH, { error: ({ input }) => whyNever(String(input), PathAllowance.options) });

export const TemplatePath = z
  .string()
  .min(1)
  .max(256, { abort: true })
  .regex(TEMPLATE, { error: ({ input }) => whyNoTemplate(String(input), PathAllowance.options) });

/** Returns the reason why no request can match the template; `undefined` if a request can. */
function whyNoTemplate(template: string, allow: readonly PathAllowance[]): string | undefined {
  if (!template.startsWith("/")) return "expected a path that begins with /";
  try {
    parseTemplate(template, allow);
  } catch (error) {
    if (error instanceof TemplateError) return error.message;
    throw error;
  }
  return whyNever(template.replace(/\{[^/]*\}/g, "x"), allow);
}

/** Returns the reason why no request can have the path; `undefined` if a request can. */
function whyNever(path: string, allow: readonly PathAllowance[]): string | undefined {
  if (!path.startsWith("/")) return "expected a path that begins with /";
  const wildcard = /[*{}]/.exec(path);
  if (wildcard !== null) return noWildcards(path, wildcard[0], wildcard.index);
  const checked = canonicalRulePath(path, allow);
  if ("refused" in checked) return `no request can match this: ${checked.refused}`;
  return decodePath(checked.path) === undefined ? "expected percent-encodings of UTF-8" : undefined;
}

function noWildcards(path: string, character: string, at: number): string {
  const before = path.slice(0, path.lastIndexOf("/", at)) || "/";
  const encoded = `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return `prefix and exact have no wildcards or parameters, so this path would match the literal character "${character}"; write a template such as ${before === "/" ? "" : before}/{name}, the prefix ${before} to match everything below it, or ${encoded} for the character`;
}

interface WithPaths {
  readonly allowPaths: readonly PathAllowance[];
  readonly rules: ReadonlyArray<{
    readonly match: {
      readonly path?: Partial<Record<"prefix" | "exact" | "template", string | undefined>> | undefined;
    };
  }>;
}

/** Matches a dot in a path that is not normalized: the dot may be percent-encoded, with hexadecimal digits in any case. */
const DOT = "([.]|%2[eE])";
const SEPARATOR = "([/\\\\]|%2[fF]|%5[cC])";
const FORMS: ReadonlyArray<{ readonly allowance: PathAllowance; readonly found: string; readonly what: string }> = [
  { allowance: "EncodedSlash", found: "%2[fF]", what: "an encoded slash (%2F)" },
  { allowance: "Backslash", found: "[\\\\]|%5[cC]", what: "a backslash" },
  { allowance: "DoubleSlash", found: "//", what: "an empty segment (//)" },
  { allowance: "DotSegments", found: `${SEPARATOR}${DOT}{1,2}($|;|%3[bB]|${SEPARATOR})`, what: "a dot segment" },
  {
    allowance: "ControlCharacters",
    found: "%[01]|%7[fF]|%[cC]2%[89]|%[eE]2%80%[aA][89]|[\\x{80}-\\x{9f}\\x{2028}\\x{2029}]",
    what: "an encoded control character",
  },
];

/** These rules apply to the complete spec rather than to a path, because `allowPaths` may allow a path that is rejected by default. */
export const PATHS_THAT_MATCH: ReadonlyArray<Rule<WithPaths>> = FORMS.map(({ allowance, found, what }, index) => ({
  rule: `'${allowance}' in self.allowPaths || self.rules.all(rule, !has(rule.match.path) || !(has(rule.match.path.prefix) ? rule.match.path.prefix : has(rule.match.path.exact) ? rule.match.path.exact : rule.match.path.template).matches(r'${found}'))`,
  message: `no request can match a rule whose path has ${what}; list ${allowance} in allowPaths to admit such requests`,
  fieldPath: ".rules",
  // Only the first rule has `faults`, because this function checks for all the forms at once.
  ...(index === 0 ? { faults: pathProblems } : {}),
}));

function pathProblems({ rules, allowPaths }: WithPaths) {
  return rules.flatMap(({ match: { path } }, index) => {
    const [[field, text] = []] = Object.entries(path ?? {}).filter(([, one]) => one !== undefined);
    if (field === undefined || text === undefined) return [];
    const isTemplate = field === "template";
    // Skips paths that `RulePath` or `TemplatePath` already rejects.
    if (!(isTemplate ? TEMPLATE : RULE_PATH).test(text)) return [];
    const message = isTemplate ? whyNoTemplate(text, allowPaths) : whyNever(text, allowPaths);
    return message === undefined ? [] : [{ path: ["rules", index, "match", "path", field], message }];
  });
}
