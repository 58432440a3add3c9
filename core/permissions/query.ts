import type { Grants } from "./grants.ts";

/*
 * The permission query of keys.verifyKey and of policy rules:
 *
 *   expr    = and { "OR" and }
 *   and     = primary { "AND" primary }
 *   primary = permission | "(" expr ")"
 *
 * The parser keeps its own stack, so that nested parentheses cannot overflow the call stack. The resulting tree is at most twice as deep
 * as the parentheses are nested, so the limit on nesting also bounds the recursion of the evaluation.
 */

export type Query =
  | { readonly op: "permission"; readonly slug: string }
  | { readonly op: "and" | "or"; readonly operands: readonly Query[] };

const NESTING_MAX = 1000;

const EXPECTED_OPERAND = 'a permission or "("';
const EXPECTED_OPERATOR = "AND, OR or the end of the query";
const EXPECTED_OPERATOR_IN_GROUP = 'AND, OR or ")"';

/** Error for an invalid query. `position` counts characters from 0; `message` states the position, what was found and what was expected. */
export class QuerySyntaxError extends Error {
  override name = "QuerySyntaxError";
  readonly position: number;
  readonly expected: string;

  constructor({ position, found, expected }: { position: number; found: string; expected: string }) {
    super(`Position ${position}: found ${found}, expected ${expected}.`);
    this.position = position;
    this.expected = expected;
  }
}

/**
 * Parser state for an unclosed parenthesis, or for the complete query: the alternatives that are already parsed, and the operands of the
 * current alternative so far.
 */
interface Group {
  readonly alternatives: Query[];
  operands: Query[];
}

/** Parses a query. If the text is invalid, throws `QuerySyntaxError`, and never any other error. */
export function parseQuery(text: string): Query {
  const outer: Group[] = [];
  let group: Group = { alternatives: [], operands: [] };
  let wantsOperand = true;
  let at = 0;
  while (at < text.length) {
    const character = text.charCodeAt(at);
    if (isSpace(character)) {
      at += 1;
      continue;
    }
    const expected = wantsOperand
      ? EXPECTED_OPERAND
      : outer.length > 0
        ? EXPECTED_OPERATOR_IN_GROUP
        : EXPECTED_OPERATOR;
    const end = endOfWord(text, at);
    const word = text.slice(at, end);
    const operator = operatorOf(word);
    if (wantsOperand && character === OPEN) {
      if (outer.length === NESTING_MAX) {
        throw new QuerySyntaxError({ position: at, found: '"("', expected: `at most ${NESTING_MAX} open parentheses` });
      }
      outer.push(group);
      group = { alternatives: [], operands: [] };
      at += 1;
    } else if (wantsOperand && word !== "" && operator === undefined) {
      group.operands.push({ op: "permission", slug: word });
      wantsOperand = false;
      at = end;
    } else if (!wantsOperand && operator !== undefined) {
      if (operator === "or") nextAlternative(group);
      wantsOperand = true;
      at = end;
    } else if (!wantsOperand && character === CLOSE) {
      const enclosing = outer.pop();
      if (enclosing === undefined) throw new QuerySyntaxError({ position: at, found: '")"', expected });
      enclosing.operands.push(finish(group));
      group = enclosing;
      at += 1;
    } else {
      throw new QuerySyntaxError({ position: at, found: describe(text, { at, word, operator }), expected });
    }
  }
  if (wantsOperand) {
    throw new QuerySyntaxError({ position: text.length, found: "the end of the query", expected: EXPECTED_OPERAND });
  }
  if (outer.length > 0) {
    throw new QuerySyntaxError({ position: text.length, found: "the end of the query", expected: '")"' });
  }
  return finish(group);
}

/** Returns whether the grants satisfy the query. Stops at the first decisive operand. */
export function evaluateQuery(query: Query, grants: Grants): boolean {
  if (query.op === "permission") return grants.satisfies(query.slug);
  const decides = query.op === "or";
  for (const operand of query.operands) {
    if (evaluateQuery(operand, grants) === decides) return decides;
  }
  return !decides;
}

const OPEN = 0x28;
const CLOSE = 0x29;

const isSpace = (character: number): boolean =>
  character === 0x20 || character === 0x09 || character === 0x0d || character === 0x0a;

/** Characters allowed in a permission: letters, digits and `. _ - : * /`. */
const WORD = new Uint8Array(128);
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:*/") {
  WORD[character.charCodeAt(0)] = 1;
}

function endOfWord(text: string, start: number): number {
  let end = start;
  while (end < text.length && WORD[text.charCodeAt(end)] === 1) end += 1;
  return end;
}

function operatorOf(word: string): "and" | "or" | undefined {
  if (word.length < 2 || word.length > 3) return undefined;
  const lower = word.toLowerCase();
  return lower === "and" || lower === "or" ? lower : undefined;
}

function nextAlternative(group: Group): void {
  group.alternatives.push(join("and", group.operands));
  group.operands = [];
}

function finish(group: Group): Query {
  nextAlternative(group);
  return join("or", group.alternatives);
}

function join(op: "and" | "or", operands: readonly Query[]): Query {
  const [only] = operands;
  return only !== undefined && operands.length === 1 ? only : { op, operands };
}

function describe(
  text: string,
  { at, word, operator }: { at: number; word: string; operator: string | undefined },
): string {
  if (operator !== undefined) return `the operator ${operator.toUpperCase()}`;
  if (word !== "") return `the permission ${JSON.stringify(word)}`;
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
  const parenthesis = character === "(" || character === ")";
  return parenthesis ? `"${character}"` : `the character ${JSON.stringify(character)}, which is not allowed here`;
}
