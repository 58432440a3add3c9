import { decodePath } from "./check-path.ts";

/**
 * Returns a path as the most lenient app would read it: decoded twice, in lower case, without invisible characters, path parameters, query,
 * empty segments and dot segments, and without spaces and dots at the ends of segments. `/` becomes the empty text.
 */
export function foldPath(path: string): string {
  const text = decodeTwice(path).toLowerCase();
  if (isFolded(text)) return text;
  const end = text.search(/[?#]/);
  const segments: string[] = [];
  for (const segment of (end === -1 ? text : text.slice(0, end)).split(/[/\\]/)) {
    const name = (segment.split(";", 1)[0] ?? "").trim();
    if (name === "..") segments.pop();
    else if (withoutEndingDots(name) !== "") segments.push(withoutEndingDots(name));
  }
  return segments.length === 0 ? "" : `/${segments.join("/")}`;
}

function decodeTwice(path: string): string {
  if (!path.includes("%")) return path;
  const once = decodePath(path) ?? path;
  const twice = once.includes("%") ? (decodePath(once) ?? once) : once;
  return /^[ -~]*$/.test(twice) ? twice : twice.normalize("NFKC").replace(INVISIBLE, "");
}

/** Control and format characters, and line separators. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function withoutEndingDots(name: string): string {
  let end = name.length;
  while (end > 0 && (name[end - 1] === "." || name[end - 1] === " ")) end -= 1;
  return name.slice(0, end);
}

/**
 * Returns whether `foldPath` would return the path unchanged. Allocates no memory. It may return false for a path that `foldPath` would not
 * change, but never true for one that it would change.
 */
export const isFolded = (path: string): boolean => path === "" || !/[A-Z%;?#\\ ]|[/.](?:$|\/)/.test(path);
