import { createHash } from "node:crypto";

/** HTTP content coding of a file. */
export type Encoding = "br" | "gzip" | "identity";

/**
 * Returns the first offered coding that the client accepts (RFC 9110, section 12.5.3). Returns `identity` without the header, because a
 * client that names no coding seldom supports one.
 */
export function acceptedEncoding(header: string | undefined, offered: readonly Encoding[]): Encoding {
  const weights = new Map((header ?? "").split(",").map(readWeight));
  const isAccepted = (encoding: Encoding): boolean => (weights.get(encoding) ?? weights.get("*") ?? 0) > 0;
  return offered.find((encoding) => encoding === "identity" || isAccepted(encoding)) ?? "identity";
}

/** Parses `br;q=0.5` into br and 0.5; an invalid weight counts as 0. */
function readWeight(text: string): [string, number] {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
  return [name, weight === undefined ? 1 : Number(weight) || 0];
}

/**
 * Returns the entity tag of a file's content. The tag contains the content coding, `form`, because each coding of the file is a separate
 * representation.
 */
export function entityTag(bytes: Buffer, form = ""): string {
  return `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}${form}"`;
}

/**
 * Returns whether a header contains the tag (RFC 9110, section 13.1.2): as a list of tags, or as `*`. Weak tags, which a compressing proxy
 * creates, count as equal.
 */
export function matchesTag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(",").some((tag) => [etag, `W/${etag}`, "*"].includes(tag.trim()));
}
