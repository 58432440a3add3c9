/*
 * Paths that rules guard, and other spellings of them that some server might serve alike. One character of a target is one byte, as on
 * the wire.
 */

/** As an app registers them: text that is not percent-encoded. */
export const GUARDED_PATHS: readonly string[] = [
  "/admin",
  "/Admin/Users",
  "/users/@me",
  "/v1/keys:purge",
  "/v2/$batch",
  "/a!b",
  "/a&b",
  "/it's",
  "/f(x)",
  "/a*b",
  "/a+b",
  "/a,b",
  "/a=b",
  "/[x]",
  "/a^b",
  "/a|b",
  '/a"b',
  "/a`b",
  "/a{b",
  "/a<b>",
  "/a b",
  "/100%",
  "/a~b-c_d",
  "/.well-known/keys",
  "/report.json",
  "/deep/er/path",
  "/orders/7/refund",
  "/café",
  "/日本",
  "/reset password/now",
];

const utf8 = (text: string): string => Buffer.from(text).toString("latin1");
const hex = (byte: string, upper = true): string => {
  const digits = byte.charCodeAt(0).toString(16).padStart(2, "0");
  return `%${upper ? digits.toUpperCase() : digits}`;
};
const canonicalBytes = (bytes: string): string => bytes.replace(/[^\w.~!$&'()*+,;=:@/-]/g, (byte) => hex(byte));
const encodeAll = (bytes: string): string => bytes.replace(/[^/]/g, (byte) => hex(byte));

/** The canonical spelling: what a client library sends. */
export const canonical = (path: string): string => canonicalBytes(utf8(path));

/** As a manifest has the path. */
export const inManifest = (path: string): string => path.replace(/[%*{} ]/g, (character) => hex(character));

const CONTROLS = Array.from({ length: 32 }, (_, code) => hex(String.fromCharCode(code)));
/** Put before, after and into a path. */
const PARTS: readonly string[] = [
  ...CONTROLS,
  ...["%7F", "%20", "%85", "%A0", "%AD", "%C0%AF", "%C1%A1", "%C2%85", "%C2%A0", "%C2%AD", "%C3", "%E2%80%A8"],
  ...["%E2%80%A9", "%E2%80%8B", "%E3%80%80", "%EF%BB%BF", "%EF%BC%8F", "%F4%90%80%80", "%FE", "%FF", "\x85", "\xff"],
  ...["/", "//", "/.", "/..", "/./", "/%2e", "/%2e%2e", ".", "..", "%2E", ";", ";x", ";x=y/", "%3B", "%3Bx", "%2F"],
  ...["\\", "%5C", "%5c..", "%252F", "%252e", "?", "?x", "%3F", "%3Fx", "%23", "%23x", "%", "%0", "%zz", "%u0061"],
  ...[".json", "~", "+", "&", "=", ",", ":", "!", "'", "*", "%2A", "%25", "%2500", "%250A", "|", '"', "<", "`", "{}"],
];

/** Returns every spelling once, the canonical one among them. */
export function spellingsOf(path: string): string[] {
  const bytes = utf8(path);
  const plain = canonical(path);
  const at = plain.lastIndexOf("/") + 1;
  const middle = plain.startsWith("%", at) ? at + 3 : at + 1;
  const found = new Set([plain, encodeAll(bytes), bytes, encodeAll(plain), plain.replaceAll("%", "%25")]);
  for (const [index, byte] of [...bytes].entries()) {
    if (byte === "/") continue;
    const before = canonicalBytes(bytes.slice(0, index));
    const after = canonicalBytes(bytes.slice(index + 1));
    for (const one of [hex(byte), hex(byte, false), byte, encodeAll(hex(byte)), `%25${hex(byte).slice(1)}`]) {
      found.add(before + one + after);
    }
    for (const one of [byte.toUpperCase(), byte.toLowerCase()]) found.add(before + canonicalBytes(one) + after);
  }
  for (const text of [path.toUpperCase(), path.toLowerCase(), path.normalize("NFD"), fullWidth(path)]) {
    found.add(canonical(text));
  }
  for (const [from, to] of [
    ["s", "ſ"],
    ["k", "\u212a"],
  ] as const) {
    found.add(canonical(path.replace(from, to)));
  }
  for (const part of PARTS) {
    found.add(plain + part);
    found.add(`/${part}${plain.slice(1)}`);
    found.add(part + plain);
    found.add(plain.slice(0, middle) + part + plain.slice(middle));
    found.add(plain.slice(0, at) + part + plain.slice(at));
  }
  for (const before of [
    "/x/..",
    "/x/%2e%2e",
    "/public/..;",
    "/.",
    "http://a",
    "HTTP://a/x/..",
    "http://a/",
    "/x%2f..",
  ]) {
    found.add(before + plain);
  }
  // Others would not be request targets, or end the request line.
  return [...found].filter((target) => /^(?:\/|http:)[^\0-\x20\x7f]*$/i.test(target));
}

const fullWidth = (path: string): string =>
  path.replace(/[!-.0-~]/, (character) => String.fromCharCode(character.charCodeAt(0) + 0xfee0));
