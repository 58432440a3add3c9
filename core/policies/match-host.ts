import { addToSet, emptySet, type RuleSet } from "./path-trie.ts";

/* Hosts of rules: a name such as `api.example.com`, or `*.example.com` for all names below `example.com`, at any depth. */

/**
 * Returns the host of a Host header as rules compare it: in lower case, without the port and without the trailing dot of a fully qualified
 * name.
 */
export function hostNameOf(host: string): string {
  const lower = host.toLowerCase();
  const name = lower.startsWith("[") ? lower.slice(0, lower.indexOf("]") + 1) : (lower.split(":", 1)[0] ?? "");
  return name.endsWith(".") ? name.slice(0, -1) : name;
}

/** A host of a rule. */
export interface HostPattern {
  readonly name: string;
  /** Whether the pattern matches all names below `name`, and not the name itself. */
  readonly isBelow: boolean;
}

export function parseHostPattern(host: string): HostPattern {
  const isBelow = host.startsWith("*.");
  return { name: hostNameOf(isBelow ? host.slice(2) : host), isBelow };
}

/** Finds the rules that apply to a host. */
export class HostSets {
  readonly #rules: number;
  readonly #everyHost: RuleSet;
  readonly #exact = new Map<string, RuleSet>();
  /** Rules for `*.NAME`, by this name. */
  readonly #below = new Map<string, RuleSet>();
  /** Cache for the last host, because most requests name one of a few hosts. */
  #last: { readonly host: string; readonly found: RuleSet } | undefined;

  /** `hosts` lists the hosts of each rule; `undefined` for a rule that applies to every host. */
  constructor(hosts: readonly (readonly string[] | undefined)[]) {
    this.#rules = hosts.length;
    this.#everyHost = emptySet(hosts.length);
    for (const [rule, names] of hosts.entries()) {
      if (names === undefined) addToSet(this.#everyHost, rule);
      for (const { name, isBelow } of (names ?? []).map(parseHostPattern)) {
        addToSet(this.#setOf(isBelow ? this.#below : this.#exact, name), rule);
      }
    }
  }

  /** The returned set must not be changed. */
  find(host: string): RuleSet {
    if (this.#last?.host === host) return this.#last.found;
    const found = this.#everyHost.slice();
    const add = (set: RuleSet | undefined) => {
      for (const [word, bits] of set?.entries() ?? []) found[word] = (found[word] as number) | bits;
    };
    add(this.#exact.get(host));
    for (let dot = host.indexOf("."); dot !== -1; dot = host.indexOf(".", dot + 1)) {
      if (dot > 0) add(this.#below.get(host.slice(dot + 1)));
    }
    this.#last = { host, found };
    return found;
  }

  #setOf(sets: Map<string, RuleSet>, name: string): RuleSet {
    const known = sets.get(name);
    if (known !== undefined) return known;
    const added = emptySet(this.#rules);
    sets.set(name, added);
    return added;
  }
}
