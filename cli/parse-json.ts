/** Parses JSON; returns `undefined` if it is invalid. The parser's own error would quote a part of the text, which may contain a secret. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
