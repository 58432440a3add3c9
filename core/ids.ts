export const ID_PREFIXES = {
  key: "key",
  api: "api",
  keySpace: "ks",
  identity: "id",
  permission: "perm",
  role: "role",
  workspace: "ws",
  ratelimit: "rl",
  namespace: "rlns",
  override: "rlor",
  request: "req",
  auditEvent: "log",
  correlation: "cor",
  policy: "pol",
  rootKey: "rk",
  event: "ev",
  projection: "prj",
  migration: "mig",
  session: "ses",
  signInLink: "sil",
} as const;
export type IdKind = keyof typeof ID_PREFIXES;

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const CODES = Uint8Array.from(ALPHABET, (character) => character.charCodeAt(0));
const BYTES_MIN = 16;
const CHARACTERS_PER_WORD = 4;
const COMBINATIONS_PER_WORD = CODES.length ** CHARACTERS_PER_WORD;

/**
 * Returns `<prefix>_` and 16 characters of `[a-zA-Z0-9]` from the 16 random bytes at `from`. Throws `RangeError` for fewer than 16. Each
 * 32-bit word is scaled to four characters. Scaling makes the most frequent group of four 0.4 % more frequent than the rarest, which costs
 * less than a thousandth of the 95 bits. In return, it avoids rejection sampling and big integers on the request path.
 */
export function makeId(kind: IdKind, randomBytes: Uint8Array, from = 0): string {
  if (randomBytes.length < from + BYTES_MIN) throw new RangeError(`an id needs ${BYTES_MIN} random bytes`);
  const codes: number[] = [];
  for (let at = from; at < from + BYTES_MIN; at += 4) {
    const word =
      (randomBytes[at] ?? 0) * 0x1000000 +
      (randomBytes[at + 1] ?? 0) * 0x10000 +
      (randomBytes[at + 2] ?? 0) * 0x100 +
      (randomBytes[at + 3] ?? 0);
    let rest = Math.floor((word / 0x100000000) * COMBINATIONS_PER_WORD);
    for (let i = 0; i < CHARACTERS_PER_WORD; i++) {
      codes.push(CODES[rest % CODES.length] ?? 0);
      rest = Math.floor(rest / CODES.length);
    }
  }
  return `${ID_PREFIXES[kind]}_${String.fromCharCode(...codes)}`;
}
