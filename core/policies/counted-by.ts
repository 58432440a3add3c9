import { createHash } from "node:crypto";
import type { KeyView } from "../verification/key-view.ts";
import { type CountedValue, isInvented } from "./counted-value.ts";
import type { DistinctValues } from "./distinct-values.ts";
import type { RuleRatelimit } from "./policy.ts";
import { parameterIn, type RulePath } from "./rule-path.ts";

/*
 * The identifier that a rule's limit counts, made of the values in its `by`:
 *
 *   [key], [identity]     the id of the key, the external id of the identity, as overrides name them
 *   [address]             address=203.0.113.9
 *   [key, path.order]     key=key_1,path.order=7
 *
 * The names of the values are part of the identifier, and `,`, `=` and `%` in a value are escaped. So two different lists of names and
 * values never have the same identifier, not even if several limits share a namespace.
 */

/** Values of a request that limits count by. */
export interface RequestValues {
  readonly method: string;
  readonly path: string;
  /** Client address; for IPv6 the network that counts as one client. */
  readonly address: string;
  readonly head: {
    /** Host in lower case, without a port. */
    readonly host: string;
    /** Values of the headers that the policy names, in the order of `RuleMatcher.headerNames`; `undefined` for a missing header. */
    readonly ruleHeaders: readonly (string | undefined)[];
  };
}

/** A rule's limit, prepared for counting. */
export interface CompiledLimit extends Omit<RuleRatelimit, "by" | "identifier"> {
  readonly by: readonly CountedValue[];
  /** For each header in `by`, its index in `RequestValues.head.ruleHeaders`; −1 for other values. */
  readonly headerAt: readonly number[];
  /** Limits the number of distinct identifiers; `undefined` if clients cannot invent any of the values. */
  readonly distinct: DistinctValues | undefined;
}

export interface Counting {
  /** `undefined` for a request without a key. */
  readonly view: KeyView | undefined;
  readonly request: RequestValues;
  readonly path: RulePath;
}

/** Returns the identifier that the limit counts for a request. */
export function identifierOf(limit: CompiledLimit, counting: Counting): string {
  const { by, headerAt, distinct } = limit;
  const [first] = by;
  if (by.length === 1 && (first?.kind === "key" || first?.kind === "identity"))
    return countedValue(first, -1, counting);
  let identifier = "";
  let group = "";
  for (let at = 0; at < by.length; at++) {
    const value = by[at] as CountedValue;
    const part = `${nameOf(value)}=${escapeValue(countedValue(value, headerAt[at] as number, counting))}`;
    identifier = at === 0 ? part : `${identifier},${part}`;
    if (distinct !== undefined && !isInvented(value)) group += `${part},`;
  }
  // All further values of a group share one counter. Its identifier ends without a `=`, so it differs from the identifier of every list of
  // values.
  return distinct === undefined || distinct.admits(group, identifier) ? identifier : `${group}others`;
}

const nameOf = ({ kind, name }: CountedValue): string => (name === "" ? kind : `${kind}.${name}`);

/** A key without an identity has its own counter. */
function countedValue({ kind, name }: CountedValue, headerAt: number, { view, request, path }: Counting): string {
  switch (kind) {
    case "key":
      return view?.key.keyId ?? "";
    case "identity":
      return view?.identity?.externalId ?? view?.key.keyId ?? "";
    case "address":
      return request.address;
    case "host":
      return request.head.host;
    case "method":
      return request.method;
    case "path":
      return parameterIn(request.path, path, name);
    case "header":
      return request.head.ruleHeaders[headerAt] ?? "";
  }
}

/**
 * Maximum characters of a value in an identifier. A longer value is replaced by its hash, so that different values still have different
 * identifiers.
 */
const VALUE_LENGTH_MAX = 64;

const PLAIN = /^[A-Za-z0-9._~:/@!$&'()*+;\-[\]]*$/;

function escapeValue(value: string): string {
  if (value.length <= VALUE_LENGTH_MAX && PLAIN.test(value)) return value;
  const escaped = value.replace(/[^A-Za-z0-9._~:/@!$&'()*+;\-[\]]/g, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x100
      ? `%${code.toString(16).toUpperCase().padStart(2, "0")}`
      : `%u${code.toString(16).padStart(4, "0")}`;
  });
  if (escaped.length <= VALUE_LENGTH_MAX) return escaped;
  return `%sha256:${createHash("sha256").update(value).digest("base64url")}`;
}
