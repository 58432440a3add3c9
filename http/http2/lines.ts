/** Appends HTTP/1.1 header lines to `fields` as alternating lower-case names and values (HTTP/2 form), except headers named in `except`. */
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
