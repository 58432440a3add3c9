import { createHash } from "node:crypto";

/** HTTP content coding of a file. */
export type Encoding = "br" | "gzip" | "identity";

/**
 * Returns the first offered coding that the client accepts (RFC 9110, section 12.5.3). If the header is missing, returns `identity`,
 * because such a client rarely supports another coding.
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
 * Returns the entity tag of a file's content. The tag contains `form`, the content coding, because each coding of the file is a separate
 * representation.
 */
export function entityTag(bytes: Buffer, form = ""): string {
  return `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}${form}"`;
}

/**
 * Returns whether an `If-None-Match` header matches the tag (RFC 9110, section 13.1.2). The header is a list of tags or `*`. A weak tag, as
 * a compressing proxy creates, matches too.
 */
export function matchesTag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(",").some((tag) => [etag, `W/${etag}`, "*"].includes(tag.trim()));
}
