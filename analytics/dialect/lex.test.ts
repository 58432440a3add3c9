import { describe, expect, test } from "vitest";
import { lex } from "./lex.ts";
import { explainProblem, QueryProblem } from "./problem.ts";

const shown = (text: string): string[] =>
  lex(text)
    .slice(0, -1)
    .map((token) => `${token.kind} ${token.text}`);

const problemOf = (text: string): string => {
  try {
    lex(text);
  } catch (error) {
    if (error instanceof QueryProblem) return `${error.kind}: ${explainProblem(error, text)}`;
    throw error;
  }
  return "no problem";
};

describe("string literals as in ClickHouse", () => {
  test.each([
    ["'a\\'b'", "a'b"],
    ["'a''b'", "a'b"],
    ["''", ""],
    ["'a\\\\b'", "a\\b"],
    ["'a\\nb\\tc\\rd\\be\\ff\\vg\\ah\\ei\\0j'", "a\nb\tc\rd\be\ff\vg\u0007h\u001bi\0j"],
    ["'a\\Nb'", "ab"],
    ["'\\/\\\"\\`\\='", '/"`='],
    ["'a\\%b\\_c\\q'", "a\\%b\\_c\\q"],
    ["'\\u0041'", "\\u0041"],
    ["'\\x41'", "A"],
    ["'\\xe4\\xb8\\xad'", "中"],
    ["'\\😀'", "\\😀"],
    ["'中😀'", "中😀"],
    ["'-- a /* b'", "-- a /* b"],
    ["'a\nb'", "a\nb"],
    ["$$a'b$$", "a'b"],
    ["$t$a$$b$t$", "a$$b"],
    ["$1$a$1$", "a"],
    ["‘it's \\’", "it's \\"],
    ["‘a‘b’", "a‘b"],
    ["'a’b'", "a’b"],
  ])("analytics SQL lexer reads literal %j as string %j", (text, value) => {
    expect(lex(text)[0]).toMatchObject({ kind: "string", text: value, span: { start: 0, end: text.length } });
  });

  test.each([
    ["select 'ab", "the quotation is not closed", 8],
    ["select 'ab\\", "the quotation is not closed", 8],
    ["select 'ab\\'", "the quotation is not closed", 8],
    ["select ‘ab'", "the quotation is not closed by `’`", 8],
    ["select $$ab$", "the quotation is not closed by `$$`", 8],
    ["select '\\x4'", "two hexadecimal digits are expected after a backslash and x", 9],
    ["select '\\xZZ'", "two hexadecimal digits are expected after a backslash and x", 9],
    ["select '\\xff'", "the quotation is not valid UTF-8", 8],
    ["select x'41'", "strings written as x'…' are not served; write the text itself", 8],
    ["select B'01'", "strings written as B'…' are not served; write the text itself", 8],
    ["select '\ud800'", "the query is not valid Unicode", 1],
  ])("analytics SQL lexer rejects literal %j", (text, detail, column) => {
    expect(problemOf(text)).toBe(`invalid_analytics_query: Line 1, column ${column}: ${detail}`);
  });

  test("analytics SQL lexer reads the string prefixes of other databases as separate words", () => {
    expect(shown("E'a' N'b'")).toEqual(["word E", "string a", "word N", "string b"]);
    expect(problemOf("U&'a'")).toBe("invalid_analytics_query: Line 1, column 2: the character `&` has no meaning here");
  });
});

describe("names", () => {
  test.each([
    ['"a b"', "a b"],
    ["`a``b`", "a`b"],
    ['"a""b"', 'a"b'],
    ['"a\\"b"', 'a"b'],
    ["“a'b”", "a'b"],
    ['"\\x41"', "A"],
    [`"${"é".repeat(100)}"`, "é".repeat(100)],
  ])("analytics SQL lexer reads identifier %s as the name %s", (text, name) => {
    expect(shown(text)).toEqual([`quotedName ${name}`]);
  });

  test("unquoted analytics SQL identifier may contain letters, digits, underscores and dollar signs", () => {
    expect(shown("a$b _1 $a Zz9")).toEqual(["word a$b", "word _1", "word $a", "word Zz9"]);
  });

  test.each(['""', "``", "“”"])("empty analytics SQL identifier %s is rejected", (text) => {
    expect(problemOf(text)).toBe("invalid_analytics_query: Line 1, column 1: a name cannot be empty");
  });

  test("analytics SQL identifier with non-ASCII letters requires quotes", () => {
    expect(problemOf("a,\n b é")).toBe(
      "invalid_analytics_query: Line 2, column 4: the character `é` has no meaning here",
    );
  });
});

describe("numbers", () => {
  test.each([
    ["007", "007"],
    ["1_000", "1000"],
    ["0x1F", "31"],
    ["0xFF_FF", "65535"],
    ["0b101", "5"],
    [".5", ".5"],
    ["5.", "5."],
    ["1.e3", "1.e3"],
    ["1_0.0_1e1_0", "10.01e10"],
    ["18446744073709551616", "18446744073709551616"],
  ])("analytics SQL lexer reads number %s as %s", (text, digits) => {
    expect(shown(text)).toEqual([`number ${digits}`]);
  });

  test.each(["1a", "1_", "1__0", "0x", "0xg", "0x1p4", "0b102", "1e", "1e400", "1._1", "1.a", "9".repeat(400)])(
    "analytics SQL lexer rejects number %s",
    (text) => expect(problemOf(text)).toContain("is not a number that is served"),
  );
});

describe("whitespace, comments and symbols", () => {
  test.each([
    ["comments of all kinds", "1 -- a\n, 2 /* b /* c */ d */ , 3 # e\n, 4 // f\n , 5 #! g"],
    ["Unicode's blanks", "\ufeff1\u00a0,\u20032\u3000, 3\u2060,\u180e4\v,\u00855\f"],
  ])("analytics SQL lexer skips %s", (_, text) => {
    expect(shown(text).filter((token) => token.startsWith("number"))).toEqual(
      [1, 2, 3, 4, 5].map((n) => `number ${n}`),
    );
  });

  test("analytics SQL lexer accepts a typographic minus but no dash", () => {
    expect(shown("3−1")).toEqual(["number 3", "sign -", "number 1"]);
    expect(problemOf("3–1")).toContain("the character `–` has no meaning here");
  });

  test.each(["1 #a", "1 @a", "!1", "a & b", "1 ^ 2", "a \\ b", "a ~ b", "1\0"])(
    "analytics SQL lexer rejects %j",
    (text) => {
      expect(problemOf(text)).toContain("has no meaning here");
    },
  );

  test.each(["/* a", "/* a /* b */"])("analytics SQL lexer rejects the unclosed comment %s", (text) => {
    expect(problemOf(text)).toContain("the comment is not closed");
  });

  test("analytics SQL lexer reads multi-character operators as one token", () => {
    expect(shown("a->b::c==d!=e<>f<=g>=h||i<=>j").filter((token) => token.startsWith("sign"))).toEqual(
      ["->", "::", "==", "!=", "<>", "<=", ">=", "||", "<=>"].map((sign) => `sign ${sign}`),
    );
  });
});
