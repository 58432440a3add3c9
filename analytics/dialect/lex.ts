import { QueryProblem, quote } from "./problem.ts";
import type { Span } from "./tree.ts";

/*
 * Lexer with ClickHouse's rules, each of which was verified on ClickHouse. They differ from other databases: backslashes escape in strings,
 * comments nest, names may be in double quotes or backticks, and typographic quotes delimit strings. Syntax whose meaning cannot be
 * preserved is rejected, such as `x'41'` or a string that is not UTF-8.
 */

/**
 * A token. `text` is the unescaped value of a string, a name without quotes, a number in decimal, or the source text of any other token.
 */
export interface Token {
  readonly kind: "word" | "quotedName" | "string" | "number" | "sign" | "end";
  readonly text: string;
  readonly span: Span;
}

const SPACE = /[\s\u0085\u180e\u200b-\u200d\u2060]+/y;
const LINE_COMMENT = /(?:--|\/\/|#[ !])[^\n]*/y;
const COMMENT_EDGE = /\/\*|\*\//g;
const WORD = /[A-Za-z_$][A-Za-z0-9_$]*/y;
const HEREDOC = /\$[A-Za-z0-9_]*\$/y;
const BASED_NUMBER = /0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|0[bB][01]+(?:_[01]+)*/y;
const DIGITS = "[0-9]+(?:_[0-9]+)*";
const NUMBER = new RegExp(`(?:${DIGITS}(?:\\.(?:${DIGITS})?)?|\\.${DIGITS})(?:[eE][+-]?${DIGITS})?`, "y");
const AFTER_NUMBER = /[A-Za-z0-9_$]/y;
const SIGN = /->|::|==|!=|<=>|<>|<=|>=|\|\||[-+*/%()[\],.;=<>?:{}]/y;

/** @throws QueryProblem */
export function lex(text: string): readonly Token[] {
  if (!text.isWellFormed()) throw problem("the query is not valid Unicode", { start: 0, end: text.length });
  const tokens: Token[] = [];
  for (let at = skipBlank(text, 0); at < text.length; ) {
    const token = tokenAt(text, at);
    tokens.push(token);
    at = skipBlank(text, token.span.end);
  }
  tokens.push({ kind: "end", text: "the end of the query", span: { start: text.length, end: text.length } });
  return tokens;
}

function tokenAt(text: string, at: number): Token {
  const first = text[at];
  if (first === "'") return quoted(text, at, "string");
  if (first === '"' || first === "`") return quoted(text, at, "quotedName");
  if (first === "‘") return enclosed(text, at, { kind: "string", opening: "‘", closing: "’" });
  if (first === "“") return enclosed(text, at, { kind: "quotedName", opening: "“", closing: "”" });
  const heredoc = match(HEREDOC, text, at);
  if (heredoc !== undefined) return enclosed(text, at, { kind: "string", opening: heredoc, closing: heredoc });
  const word = match(WORD, text, at);
  if (word !== undefined) return wordToken(text, at, word);
  const number = numberAt(text, at);
  if (number !== undefined) return number;
  if (first === "−") return { kind: "sign", text: "-", span: { start: at, end: at + 1 } };
  const sign = match(SIGN, text, at);
  if (sign !== undefined) return { kind: "sign", text: sign, span: { start: at, end: at + sign.length } };
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
  throw problem(`the character ${quote(character)} has no meaning here`, { start: at, end: at + character.length });
}

function wordToken(text: string, at: number, word: string): Token {
  const span = { start: at, end: at + word.length };
  // ClickHouse reads `x'41'` and `b'01'` as byte strings, not as a name and a string.
  if (/^[xb]$/i.test(word) && text[span.end] === "'") {
    throw problem(`strings written as ${word}'…' are not served; write the text itself`, span);
  }
  return { kind: "word", text: word, span };
}

function numberAt(text: string, at: number): Token | undefined {
  const based = match(BASED_NUMBER, text, at);
  const written = based ?? match(NUMBER, text, at);
  if (written === undefined) return undefined;
  const span = { start: at, end: at + written.length };
  const rest = match(AFTER_NUMBER, text, span.end);
  const digits = written.replaceAll("_", "");
  if (rest !== undefined || !Number.isFinite(Number(digits))) {
    throw problem(`${quote(written + (rest ?? ""))} is not a number that is served`, span);
  }
  return { kind: "number", text: based === undefined ? digits : BigInt(digits).toString(), span };
}

/** Reads a token with escapes: `'a'`, `"a"`, or a name in backticks. A backslash or a second quote escapes the quote. */
function quoted(text: string, start: number, kind: "string" | "quotedName"): Token {
  const quoteMark = text[start] ?? "";
  const plain = new RegExp(`[^\\\\${quoteMark}]+`, "y");
  const bytes: Buffer[] = [];
  let at = start + 1;
  while (at < text.length) {
    const chunk = match(plain, text, at);
    if (chunk !== undefined) {
      bytes.push(Buffer.from(chunk));
      at += chunk.length;
    } else if (text[at] === "\\") {
      const { value, end } = readEscape(text, at);
      bytes.push(value);
      at = end;
    } else if (text[at + 1] === quoteMark) {
      bytes.push(Buffer.from(quoteMark));
      at += 2;
    } else {
      return finished(kind, Buffer.concat(bytes), { start, end: at + 1 });
    }
  }
  throw problem("the quotation is not closed", { start, end: text.length });
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\u0007",
  b: "\b",
  e: "\u001b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "0": "\0",
  N: "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "`": "`",
  "/": "/",
  "=": "=",
};

/** Keeps a backslash before any other character, which matters for LIKE: `'\%'` has two characters. */
function readEscape(text: string, at: number): { value: Buffer; end: number } {
  const letter = String.fromCodePoint(text.codePointAt(at + 1) ?? 0);
  if (letter === "x") {
    const digits = text.slice(at + 2, at + 4);
    const span = { start: at, end: at + 4 };
    if (!/^[0-9a-fA-F]{2}$/.test(digits))
      throw problem("two hexadecimal digits are expected after a backslash and x", span);
    return { value: Buffer.from(digits, "hex"), end: span.end };
  }
  if (at + 1 === text.length) return { value: Buffer.alloc(0), end: text.length };
  return { value: Buffer.from(ESCAPES[letter] ?? `\\${letter}`), end: at + 1 + letter.length };
}

/** Reads a string without escapes: `$$a$$`, `$tag$a$tag$`, or typographic quotes. */
function enclosed(
  text: string,
  start: number,
  { kind, opening, closing }: { kind: "string" | "quotedName"; opening: string; closing: string },
): Token {
  const from = start + opening.length;
  const to = text.indexOf(closing, from);
  if (to < 0) throw problem(`the quotation is not closed by ${quote(closing)}`, { start, end: text.length });
  return finished(kind, Buffer.from(text.slice(from, to)), { start, end: to + closing.length });
}

function finished(kind: "string" | "quotedName", bytes: Buffer, span: Span): Token {
  if (kind === "quotedName" && bytes.length === 0) throw problem("a name cannot be empty", span);
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { kind, text, span };
  } catch (error) {
    if (error instanceof TypeError) throw problem("the quotation is not valid UTF-8", span);
    throw error;
  }
}

function skipBlank(text: string, from: number): number {
  for (let at = from; ; ) {
    const blank = match(SPACE, text, at) ?? match(LINE_COMMENT, text, at);
    if (blank !== undefined) at += blank.length;
    else if (text.startsWith("/*", at)) at = endOfComment(text, at);
    else return at;
  }
}

function endOfComment(text: string, start: number): number {
  COMMENT_EDGE.lastIndex = start;
  let depth = 0;
  for (let edge = COMMENT_EDGE.exec(text); edge !== null; edge = COMMENT_EDGE.exec(text)) {
    depth += edge[0] === "/*" ? 1 : -1;
    if (depth === 0) return COMMENT_EDGE.lastIndex;
  }
  throw problem("the comment is not closed", { start, end: text.length });
}

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

const problem = (detail: string, span: Span): QueryProblem => new QueryProblem("invalid_analytics_query", detail, span);
