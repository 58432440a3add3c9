import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyText } from "../../test/builders/text.ts";
import { compileGrants } from "./grants.ts";
import { evaluateQuery, parseQuery, type Query, QuerySyntaxError } from "./query.ts";

/** Returns the query as text with every operator in parentheses. */
const show = (query: Query): string =>
  query.op === "permission" ? query.slug : `(${query.operands.map(show).join(` ${query.op} `)})`;

const failure = (text: string): QuerySyntaxError => {
  try {
    parseQuery(text);
  } catch (error) {
    if (error instanceof QuerySyntaxError) return error;
    throw error;
  }
  throw new Error(`${text} parses`);
};

describe("parsing", () => {
  test.each([
    ["a", "a"],
    ["  a\t\r\n", "a"],
    ["a AND b", "(a and b)"],
    ["a or b and c", "(a or (b and c))"],
    ["a AND b OR c AND d", "((a and b) or (c and d))"],
    ["(a OR b) AND c", "((a or b) and c)"],
    ["a AND(b)", "(a and b)"],
    ["(a)OR(b)", "(a or b)"],
    ["((a))", "a"],
    ["a aNd b oR c", "((a and b) or c)"],
    ["ANDperm OR order", "(ANDperm or order)"],
    ["a.b_c-d:e*/F9 AND *", "(a.b_c-d:e*/F9 and *)"],
    ["and.x or or_1", "(and.x or or_1)"],
  ])("permission query %j is parsed as %s", (text, shown) => expect(show(parseQuery(text))).toBe(shown));

  test.each([
    { text: "", position: 0, expected: 'a permission or "("' },
    { text: " \t ", position: 3, expected: 'a permission or "("' },
    { text: "AND a", position: 0, expected: 'a permission or "("' },
    { text: "a AND", position: 5, expected: 'a permission or "("' },
    { text: "a AND AND b", position: 6, expected: 'a permission or "("' },
    { text: "a AND ()", position: 7, expected: 'a permission or "("' },
    { text: "(a AND b", position: 8, expected: '")"' },
    { text: "a )", position: 2, expected: "AND, OR or the end of the query" },
    { text: "a b", position: 2, expected: "AND, OR or the end of the query" },
    { text: "(a b)", position: 3, expected: 'AND, OR or ")"' },
    { text: "a (b)", position: 2, expected: "AND, OR or the end of the query" },
    { text: "a & b", position: 2, expected: "AND, OR or the end of the query" },
    { text: "a,b", position: 1, expected: "AND, OR or the end of the query" },
    { text: '"a"', position: 0, expected: 'a permission or "("' },
    { text: "a AND \u{1f511}", position: 6, expected: 'a permission or "("' },
    { text: "and", position: 0, expected: 'a permission or "("' },
    { text: "a\u00a0AND b", position: 1, expected: "AND, OR or the end of the query" },
  ])("permission query $text is rejected at position $position", ({ text, position, expected }) => {
    const error = failure(text);
    expect(error).toMatchObject({ position, expected });
    expect(error.message).toContain(`Position ${position}`);
    expect(error.message).toContain(expected);
  });

  test("permission query error names an invalid character", () => {
    expect(failure("a AND b & c").message).toContain('the character "&"');
  });

  test("permission query accepts 1000 nested parentheses and rejects more without overflow", () => {
    const nested = (depth: number): string => `${"(".repeat(depth)}a${")".repeat(depth)}`;
    expect(show(parseQuery(nested(1000)))).toBe("a");
    expect(failure(nested(1001)).position).toBe(1000);
    expect(failure("(".repeat(1_000_000)).position).toBe(1000);
    const deep = `${"(a AND (b OR ".repeat(500)}c${"))".repeat(500)}`;
    expect(evaluateQuery(parseQuery(deep), compileGrants(["a", "c"]))).toBe(true);
    expect(evaluateQuery(parseQuery(deep), compileGrants(["a"]))).toBe(false);
  });

  const noisy = fc.oneof(
    anyText({ maxLength: 60 }),
    fc
      .array(fc.constantFrom("a", "b.*", "AND", "or", "(", ")", " ", "\t", "&", "orders.read"), { maxLength: 40 })
      .map((parts) => parts.join("")),
    fc.array(fc.constantFrom("a", "AND", "OR", "(", ")"), { maxLength: 40 }).map((parts) => parts.join(" ")),
  );

  test("permission query parser throws only QuerySyntaxError with a valid position", () => {
    fc.assert(
      fc.property(noisy, (text) => {
        try {
          parseQuery(text);
        } catch (error) {
          expect(error).toBeInstanceOf(QuerySyntaxError);
          if (!(error instanceof QuerySyntaxError)) return;
          expect(error.position).toBeGreaterThanOrEqual(0);
          expect(error.position).toBeLessThanOrEqual(text.length);
        }
      }),
      { numRuns: 3000 },
    );
  });
});

/** A query as data with its text, with required and some random parentheses. */
type Model = { slug: string } | { op: "AND" | "OR"; left: Model; right: Model; extra: boolean };
const { model } = fc.letrec<{ model: Model }>((tie) => ({
  model: fc.oneof(
    { maxDepth: 6, depthSize: "medium" },
    fc.record({ slug: fc.constantFrom("a", "b", "c", "d") }),
    fc.record({
      op: fc.constantFrom("AND" as const, "OR" as const),
      left: tie("model"),
      right: tie("model"),
      extra: fc.boolean(),
    }),
  ),
}));

function write(query: Model): string {
  if ("slug" in query) return query.slug;
  const side = (operand: Model): string => {
    const required = query.op === "AND" && "op" in operand && operand.op === "OR";
    return required ? `(${write(operand)})` : write(operand);
  };
  const text = `${side(query.left)} ${query.op} ${side(query.right)}`;
  return query.extra ? `( ${text})` : text;
}

const naive = (query: Model, held: ReadonlySet<string>): boolean => {
  if ("slug" in query) return held.has(query.slug);
  const left = naive(query.left, held);
  const right = naive(query.right, held);
  return query.op === "AND" ? left && right : left || right;
};

test("permission query evaluation gives the same result as a naive model for every permission set", () => {
  fc.assert(
    fc.property(model, fc.subarray(["a", "b", "c", "d"]), (query, held) => {
      expect(evaluateQuery(parseQuery(write(query)), compileGrants(held))).toBe(naive(query, new Set(held)));
    }),
    { numRuns: 2000 },
  );
});
