/** How the bytes of a file are packed: by the words of HTTP. */
export type Encoding = "br" | "gzip" | "identity";

/**
 * Returns the first of these that the caller takes (RFC 9110, section 12.5.3). Without the header that is `identity`, because a client
 * that names no encoding seldom knows one.
 */
export function acceptedEncoding(header: string | undefined, offered: readonly Encoding[]): Encoding {
  const weights = new Map((header ?? "").split(",").map(readWeight));
  const isAccepted = (encoding: Encoding): boolean => (weights.get(encoding) ?? weights.get("*") ?? 0) > 0;
  return offered.find((encoding) => encoding === "identity" || isAccepted(encoding)) ?? "identity";
}

/** `br;q=0.5` is br with 0.5; a weight that is none counts as 0. */
function readWeight(text: string): [string, number] {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
  return [name, weight === undefined ? 1 : Number(weight) || 0];
}
