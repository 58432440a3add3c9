/*
 * Name of a Kubernetes object, derived from a stored name that may contain any characters. It depends only on the stored name, so two
 * exports of the same object have the same name.
 */

/** Maximum length of a name: the limit for label values, because tools copy names into labels. */
const LENGTH_MAX = 63;
const VALID = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/**
 * Returns `text` if it is a valid Kubernetes name. Otherwise returns its valid characters and a hash of the complete text: without the
 * hash, `Editor` and `editor!` would get the same name, and one manifest would overwrite the other's object.
 * @param kind replaces a text without valid characters, such as `日本`.
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

/** FNV-1a over UTF-16 units, as eight hexadecimal digits. Distinguishes names; not a security feature. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}
