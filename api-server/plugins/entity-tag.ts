import { createHash } from "node:crypto";

/** Returns the entity tag of a content. `form` is the content coding, because each coding is a different representation. */
export function entityTag(bytes: Buffer, form = ""): string {
  return `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}${form}"`;
}

/** RFC 9110, section 13.1.2: a list of tags, or `*`; weak tags (which a compressing proxy creates) count as equal. */
export function matchesTag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(",").some((tag) => [etag, `W/${etag}`, "*"].includes(tag.trim()));
}
