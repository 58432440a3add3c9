import type { Random } from "./random.ts";

/** Bytes with a meaning in HTTP, alone or to a lenient parser. */
const TOKENS = [
  "\r\n",
  "\n",
  "\r",
  "\r\n\r\n",
  "\0",
  " ",
  "\t",
  "\x0b",
  ":",
  ",",
  ";",
  "\x7f",
  "\xff",
  "\x85",
  "0\r\n\r\n",
  "Content-Length: 5\r\n",
  "Transfer-Encoding: chunked\r\n",
  "X-Postern-Key-Id: forged\r\n",
  "HTTP/1.1 ",
  "GET /closed/smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
];

/** Changes a text in one to three places: flips a bit, adds a token, removes a piece, doubles a piece, cuts off the end. */
export function mutate(random: Random, text: string): string {
  let mutated = text;
  for (let left = 1 + random.int(3); left > 0 && mutated.length > 0; left--) {
    const at = random.int(mutated.length);
    const length = 1 + random.int(Math.min(40, mutated.length - at));
    const [before, piece, after] = [mutated.slice(0, at), mutated.slice(at, at + length), mutated.slice(at + length)];
    switch (random.int(5)) {
      case 0: {
        const flipped = mutated.charCodeAt(at) ^ (1 << random.int(8));
        mutated = before + String.fromCharCode(flipped) + mutated.slice(at + 1);
        break;
      }
      case 1:
        mutated = before + random.pick(TOKENS) + piece + after;
        break;
      case 2:
        mutated = before + after;
        break;
      case 3:
        mutated = before + piece + piece + after;
        break;
      default:
        mutated = random.oneIn(3) ? before : before + random.pick(TOKENS) + after;
    }
  }
  return mutated;
}

/** The text in pieces, cut at random places; often not cut at all. */
export function split(random: Random, text: string): string[] {
  const pieces: string[] = [];
  let rest = text;
  for (let cuts = random.oneIn(2) ? 0 : 1 + random.int(4); cuts > 0 && rest.length > 1; cuts--) {
    const at = 1 + random.int(rest.length - 1);
    pieces.push(rest.slice(0, at));
    rest = rest.slice(at);
  }
  return [...pieces, rest];
}
