import type { Expression, From, Query, Span } from "./tree.ts";

/** A node of the tree that has a kind. Items of ORDER BY, windows and CTE definitions have none, but a walk descends through them. */
export type Part = Expression | From | Query;

/**
 * Visits all nodes in source order. If `visit` returns false, the node's children are skipped. Does not recurse, because a chain of a
 * thousand operators is a thousand levels deep.
 */
export function walk(root: unknown, visit: (part: Part) => boolean | undefined): void {
  const waiting: unknown[] = [root];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value !== "object" || value === null) continue;
    if ("kind" in value && "span" in value && visit(value as Part) === false) continue;
    waiting.push(...Object.values(value).reverse());
  }
}

/** Counts the nodes of a tree, including items, windows and definitions. A name counts as part of the node to which it belongs. */
export function countNodes(root: unknown): number {
  let nodes = 0;
  const waiting: unknown[] = [root];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value !== "object" || value === null) continue;
    if ("span" in value && !("quoted" in value)) nodes += 1;
    waiting.push(...Object.values(value));
  }
  return nodes;
}

/** Returns the direct subqueries, without nested ones. */
export function queriesIn(...roots: readonly unknown[]): readonly Query[] {
  const found: Query[] = [];
  walk(roots, (part) => {
    if (part.kind !== "select" && part.kind !== "set") return true;
    found.push(part);
    return false;
  });
  return found;
}

/** Returns the problem with the lowest position in the text. */
export const firstOf = <T extends { readonly span: Span }>(problems: readonly T[]): T | undefined =>
  problems.toSorted((a, b) => a.span.start - b.span.start)[0];
