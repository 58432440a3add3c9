import type { Token } from "../lex.ts";
import { QueryProblem, quote } from "../problem.ts";
import type { Identifier, Span } from "../tree.ts";

/** What nests deeper is refused, so that no text can exhaust the stack of the parser or of those who walk its tree. */
const DEPTH_MAX = 100;

/** A place in the words of a query. Every step goes forward, so that parsing takes time linear in the text. */
export class Cursor {
  readonly #tokens: readonly Token[];
  readonly #end: Token;
  #at = 0;
  #depth = 0;

  /** `tokens` end with one of kind `end`. */
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

  /** Words are compared without regard to case. What is in quotes is never one of them. */
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

  /** Takes all words, or none. */
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

  /** A name: a word or what is in quotes. */
  expectName(what: string): Identifier {
    const token = this.peek();
    if (token.kind !== "word" && token.kind !== "quotedName") throw this.unexpected(what);
    this.#at += 1;
    return { text: token.text, quoted: token.kind === "quotedName", span: token.span };
  }

  /** From the start of `first` to the end of the last token that was taken. */
  since(first: { readonly span: Span }): Span {
    const last = this.#tokens[this.#at - 1];
    return { start: first.span.start, end: last?.span.end ?? first.span.end };
  }

  /** Runs one level deeper. */
  nested<T>(read: () => T): T {
    if (this.#depth === DEPTH_MAX) throw this.problem("the query nests too deep");
    this.#depth += 1;
    const result = read();
    this.#depth -= 1;
    return result;
  }

  /** The problem that something else was expected where the cursor stands. */
  unexpected(expected: string): QueryProblem {
    const { kind, text } = this.peek();
    return this.problem(`${expected} is expected, not ${kind === "end" ? text : quote(text)}`);
  }

  /** The problem that ClickHouse has what stands here and we do not. */
  notServed(what: string): QueryProblem {
    return this.problem(`${what} is not served`);
  }

  /** A problem where the cursor stands. */
  problem(detail: string): QueryProblem {
    return new QueryProblem("invalid_analytics_query", detail, this.peek().span);
  }
}
