import type { Expression, From, Query, Span } from "./tree.ts";

/** A part of a tree that has a kind. Items of ORDER BY, windows and definitions of WITH have none and are passed through. */
export type Part = Expression | From | Query;

/**
 * Visits all parts of a tree in the order of the text, without recursion: a chain of a thousand operators is a tree of that depth.
 * What lies inside of a part is left out when `visit` returns false for it.
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

/** How many nodes a tree has: every part, item, window and definition. Names belong to what they name. */
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

/** The queries directly inside of what is given: subqueries, but not theirs. */
export function queriesIn(...roots: readonly unknown[]): readonly Query[] {
  const found: Query[] = [];
  walk(roots, (part) => {
    if (part.kind !== "select" && part.kind !== "set") return true;
    found.push(part);
    return false;
  });
  return found;
}

/** The first problem by its place in the text. */
export const firstOf = <T extends { readonly span: Span }>(problems: readonly T[]): T | undefined =>
  problems.toSorted((a, b) => a.span.start - b.span.start)[0];
