/** Returns the values of a header, joined with commas; `undefined` if it is absent. `name` is in lower case. */
export function headerIn(rawHeaders: readonly string[], name: string): string | undefined {
  let found: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const one = rawHeaders[at] as string;
    if (one.length !== name.length || one.toLowerCase() !== name) continue;
    const value = rawHeaders[at + 1] as string;
    found = found === undefined ? value : `${found}, ${value}`;
  }
  return found;
}
