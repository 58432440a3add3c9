import { type HeaderPair, parseHeaderLine } from "../core/policies/rule-headers.ts";
import { invalidValue } from "./values.ts";

/** A request line such as `POST /orders`. The path may have a query. */
export interface RequestLine {
  readonly method: string;
  readonly path: string;
}

const LINE = /^([A-Z]{1,20}) (\/\S{0,4095})$/;

/** Parses a request line; returns `undefined` unless the text is a method, one space and a path. */
export function findRequestLine(text: string): RequestLine | undefined {
  const [, method, path] = LINE.exec(text) ?? [];
  return method === undefined || path === undefined ? undefined : { method, path };
}

/** Parses the request line of an option. Throws `UsageError` if it is invalid. */
export function parseRequestLine(option: string, text: string): RequestLine {
  const found = findRequestLine(text);
  if (found !== undefined) return found;
  throw invalidValue(option, text, "a method and a path such as 'POST /orders'");
}

/** Parses headers of an option, each `NAME: VALUE`. Throws `UsageError` if one is invalid. */
export function parseHeaders(option: string, texts: readonly string[]): HeaderPair[] {
  return texts.map((text) => {
    const header = parseHeaderLine(text);
    if (header === undefined) throw invalidValue(option, text, "'NAME: VALUE'");
    return header;
  });
}
