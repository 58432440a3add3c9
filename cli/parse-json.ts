/** undefined for what is no JSON: the parser's own error would show a part of the text, which may have a secret. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
