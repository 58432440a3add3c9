/*
 * What somebody typed or pasted into the search field, so that a secret is never treated as a text to look for. A key is one when in doubt: it is then
 * hashed in the browser, and whoever meant a name chooses "Name" again.
 */

export type Recognized =
  | { readonly kind: "keyId"; readonly keyId: string }
  /** A whole key: it must not leave the page, nor stand in the address. */
  | { readonly kind: "secret"; readonly secret: string }
  | { readonly kind: "text"; readonly text: string };

/** `key_` and what core/ids.ts draws. */
const KEY_ID = /^key_[A-Za-z0-9]{16}$/;
/** Without spaces, and its last part has so many characters that no person would have chosen it. */
const SECRET_PART_LENGTH_MIN = 18;

export function recognize(typed: string): Recognized {
  const text = typed.trim();
  if (KEY_ID.test(text)) return { kind: "keyId", keyId: text };
  const last = text.split("_").at(-1) ?? "";
  // Digits alone are no sign: one key of thirty has none.
  const isRandom =
    (/^[A-Za-z0-9+/=.-]+$/.test(last) && /[A-Z]/.test(last) && /[a-z]/.test(last)) ||
    /^(?=.*\d)[a-z0-9]{24,}$/.test(last);
  if (!/\s/.test(text) && last.length >= SECRET_PART_LENGTH_MIN && isRandom) return { kind: "secret", secret: text };
  return { kind: "text", text };
}
