import type { Token } from "../lex.ts";
import { QueryProblem, quote } from "../problem.ts";
import type { Identifier, Span } from "../tree.ts";

/** Maximum nesting depth. It protects the stack in the parser and in recursive tree walks. */
const DEPTH_MAX = 100;

/** Position in the token list. The cursor only moves forward, so parsing takes linear time. */
export class Cursor {
  readonly #tokens: readonly Token[];
  readonly #end: Token;
  #at = 0;
  #depth = 0;

  /** `tokens` must end with a token of kind `end`. */
  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
    this.#end = tokens.at(-1) ?? { kind: "end", text: "", span: { start: 0, end: 0 } };
  }

  peek(ahead = 0): Token {
    return this.#tokens[this.#at + ahead] ?? this.#end;
  }

  next(): Token {
    const token = this.peek();
    this.#at += 1;
    return token;
  }

  isSign(sign: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token.kind === "sign" && token.text === sign;
  }

  /** Keywords are case-insensitive. A quoted name is never a keyword. */
  isWord(word: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token.kind === "word" && token.text.toLowerCase() === word;
  }

  isWords(...words: readonly string[]): boolean {
    return words.every((word, index) => this.isWord(word, index));
  }

  takeSign(sign: string): boolean {
    const found = this.isSign(sign);
    if (found) this.#at += 1;
    return found;
  }

  /** Consumes the words if all of them match; otherwise leaves the cursor unchanged. */
  takeWords(...words: readonly string[]): boolean {
    const found = this.isWords(...words);
    if (found) this.#at += words.length;
    return found;
  }

  expectSign(sign: string): void {
    if (!this.takeSign(sign)) throw this.unexpected(quote(sign));
  }

  expectWord(word: string): void {
    if (!this.takeWords(word)) throw this.unexpected(word.toUpperCase());
  }

  /** Consumes a name, quoted or not. */
  expectName(what: string): Identifier {
    const token = this.peek();
    if (token.kind !== "word" && token.kind !== "quotedName") throw this.unexpected(what);
    this.#at += 1;
    return { text: token.text, quoted: token.kind === "quotedName", span: token.span };
  }

  /** Returns the span from `first` to the last consumed token. */
  since(first: { readonly span: Span }): Span {
    const last = this.#tokens[this.#at - 1];
    return { start: first.span.start, end: last?.span.end ?? first.span.end };
  }

  /** Runs `read` one nesting level deeper. */
  nested<T>(read: () => T): T {
    if (this.#depth === DEPTH_MAX) throw this.problem("the query nests too deep");
    this.#depth += 1;
    const result = read();
    this.#depth -= 1;
    return result;
  }

  /** Returns a problem that names the expected and the actual token. */
  unexpected(expected: string): QueryProblem {
    const { kind, text } = this.peek();
    return this.problem(`${expected} is expected, not ${kind === "end" ? text : quote(text)}`);
  }

  /** Returns a problem for ClickHouse syntax that this dialect does not support. */
  notServed(what: string): QueryProblem {
    return this.problem(`${what} is not served`);
  }

  /** Returns a problem at the current token. */
  problem(detail: string): QueryProblem {
    return new QueryProblem("invalid_analytics_query", detail, this.peek().span);
  }
}
