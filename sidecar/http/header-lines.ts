/** Returns alternating header names and values as header lines. */
export function linesOf(headers: readonly string[]): string {
  let lines = "";
  for (let at = 0; at < headers.length; at += 2) lines += `${headers[at]}: ${headers[at + 1]}\r\n`;
  return lines;
}
