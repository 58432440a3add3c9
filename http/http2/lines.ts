/** Appends header lines, except those in `except`, as alternating lower-case names and values (HTTP/2 form). */
export function pushLines(fields: (string | number)[], lines: string, except?: string): void {
  for (let at = 0; at < lines.length; ) {
    const end = lines.indexOf("\r\n", at);
    const colon = lines.indexOf(":", at);
    if (end === -1 || colon === -1 || colon > end) return;
    const name = lines.slice(at, colon).toLowerCase();
    if (name !== except) fields.push(name, lines.slice(colon + 1, end).trim());
    at = end + 2;
  }
}
