/** Returns `undefined` for invalid JSON, because the parser's error would show a part of the text, which may contain a secret. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
