/*
 * Classifies the input of the search field so that a secret is never searched for as text. An input that could be either counts as a key
 * and is hashed in the browser; a person who meant a name can select "Name".
 */

export type Recognized =
  | { readonly kind: "keyId"; readonly keyId: string }
  /** A complete key, which must not leave the page or appear in the URL. */
  | { readonly kind: "secret"; readonly secret: string }
  | { readonly kind: "text"; readonly text: string };

/** Format of key ids, as core/ids.ts generates them. */
const KEY_ID = /^key_[A-Za-z0-9]{16}$/;
/**
 * Minimum length of the last part of a text that counts as a key. Text with spaces never counts as a key, and people choose no names this
 * long.
 */
const SECRET_PART_LENGTH_MIN = 18;

export function recognize(typed: string): Recognized {
  const text = typed.trim();
  if (KEY_ID.test(text)) return { kind: "keyId", keyId: text };
  const last = text.split("_").at(-1) ?? "";
  // The random part is not required to contain a digit, because about one key in thirty contains none.
  const isRandom =
    (/^[A-Za-z0-9+/=.-]+$/.test(last) && /[A-Z]/.test(last) && /[a-z]/.test(last)) ||
    /^(?=.*\d)[a-z0-9]{24,}$/.test(last);
  if (!/\s/.test(text) && last.length >= SECRET_PART_LENGTH_MIN && isRandom) return { kind: "secret", secret: text };
  return { kind: "text", text };
}
