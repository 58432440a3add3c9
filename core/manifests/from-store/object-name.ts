/*
 * The name of a Kubernetes object that is made of a name in the store, which may have any characters. It follows from that name alone,
 * so that a manifest that is written twice is the same object.
 */

/** As long as a label's value, so that tools that copy the name into a label can. */
const LENGTH_MAX = 63;
const VALID = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/**
 * Returns `text` where Kubernetes allows it. Otherwise what can be kept of it, followed by digits that depend on the whole text:
 * without them `Editor` and `editor!` would be one object, and the later manifest would overwrite the earlier.
 * @param kind stands where nothing of the text can be kept, such as for `日本`.
 */
export function objectNameOf(text: string, kind: string): string {
  if (VALID.test(text) && text.length <= LENGTH_MAX) return text;
  const digits = hashOf(text);
  const kept = text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, LENGTH_MAX - digits.length - 1)
    .replace(/-+$/, "");
  return `${kept === "" ? kind.toLowerCase() : kept}-${digits}`;
}

/** FNV-1a over UTF-16 units, as eight hexadecimal digits: it tells names apart, and protects nothing. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}
