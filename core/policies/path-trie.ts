import { PARAMETER, type RulePath, type RuleSegment } from "./rule-path.ts";

/*
 * Finds the rules whose path matches, in one pass over the segments of a request's path. Rules are numbers, and a set of rules is a bit
 * array. So the sets for different conditions (path, method, host) can be intersected with a few AND operations, even for many rules.
 */

/** A set of rule numbers: one bit per rule. */
export type RuleSet = Uint32Array;

export const emptySet = (rules: number): RuleSet => new Uint32Array(Math.max(1, Math.ceil(rules / 32)));

export function addToSet(set: RuleSet, rule: number): void {
  set[rule >>> 5] = (set[rule >>> 5] ?? 0) | (1 << (rule & 31));
}

/** Adds all members of `more` to `set`. */
function unite(set: RuleSet, more: RuleSet | undefined): void {
  if (more === undefined) return;
  for (let word = 0; word < set.length; word++) set[word] = (set[word] as number) | (more[word] as number);
}

interface Node {
  readonly literals: Map<string, Node>;
  parameter: Node | undefined;
  /** Rules that match a path that ends at this node. */
  here: RuleSet | undefined;
  /** Rules that match a path that continues below this node. */
  below: RuleSet | undefined;
}

const newNode = (): Node => ({ literals: new Map(), parameter: undefined, here: undefined, below: undefined });

export class PathTrie {
  readonly #rules: number;
  readonly #root = newNode();

  /** `rules` is the number of rules, which are numbered from 0. */
  constructor(rules: number) {
    this.#rules = rules;
  }

  add(rule: number, { segments, ends }: Pick<RulePath, "segments" | "ends">): void {
    let node = this.#root;
    for (const segment of segments) node = childOf(node, segment);
    if (ends !== "below") {
      node.here ??= emptySet(this.#rules);
      addToSet(node.here, rule);
    }
    if (ends !== "here") {
      node.below ??= emptySet(this.#rules);
      addToSet(node.below, rule);
    }
  }

  /** Adds to `found` the rules whose path matches. The path begins with a slash; `""` has no segment and matches only the root. */
  find(path: string, found: RuleSet): void {
    collect(this.#root, path, 0, found);
  }
}

function childOf(node: Node, segment: RuleSegment): Node {
  if (segment === PARAMETER) {
    node.parameter ??= newNode();
    return node.parameter;
  }
  const known = node.literals.get(segment);
  if (known !== undefined) return known;
  const added = newNode();
  node.literals.set(segment, added);
  return added;
}

/** `at` is the index of the slash before the next segment, or the length of the path. */
function collect(node: Node, path: string, at: number, found: RuleSet): void {
  if (at >= path.length) {
    unite(found, node.here);
    return;
  }
  unite(found, node.below);
  if (node.literals.size === 0 && node.parameter === undefined) return;
  const slash = path.indexOf("/", at + 1);
  const end = slash === -1 ? path.length : slash;
  const child = node.literals.size === 0 ? undefined : node.literals.get(path.slice(at + 1, end));
  if (child !== undefined) collect(child, path, end, found);
  if (node.parameter !== undefined && end > at + 1) collect(node.parameter, path, end, found);
}
