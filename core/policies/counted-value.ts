import type { RuleRatelimit } from "./policy.ts";

type Kind = "key" | "identity" | "address" | "host" | "method" | "path" | "header";

/** One value of `by`. `name` is the parameter or the header in lower case. */
export interface CountedValue {
  readonly kind: Kind;
  readonly name: string;
}

/** Parses an entry of `by`. */
export function countedValueOf(text: string): CountedValue {
  const dot = text.indexOf(".");
  if (dot === -1) return { kind: text as Kind, name: "" };
  const kind = text.slice(0, dot) as Kind;
  const name = text.slice(dot + 1);
  return { kind, name: kind === "header" ? name.toLowerCase() : name };
}

/** Returns the values that a stored limit counts by. */
export const countedBy = ({ by, identifier = "key" }: Pick<RuleRatelimit, "by" | "identifier">): CountedValue[] =>
  (by ?? [identifier]).map(countedValueOf);

/** Returns whether only a request with a key has the value. */
export const isOfKey = ({ kind }: CountedValue): boolean => kind === "key" || kind === "identity";

/** Returns whether a client can send any value it likes. If so, the number of distinct values must be bounded. */
export const isInvented = ({ kind }: CountedValue): boolean => kind === "path" || kind === "header" || kind === "host";
