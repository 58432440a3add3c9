/*
 * Removes `100 Continue` from what an app sends before its response. The gate answers `Expect` itself and never asks an app to
 * continue, but an app may send it anyway (RFC 9110, 15.2.1), and undici then closes the connection.
 *
 *   idle ──request sent──► at a head ──1xx, whole──► at a head (without it, if it was a 100)
 *    ▲                         │
 *    └──── anything else ──────┘   and from there on all bytes pass unchanged
 */

/** `HTTP/1.1 1xx`: enough bytes to recognize a head. */
const KNOWN_AT = 12;
/** A longer interim head is left to the parser, which refuses it. */
const HELD_BYTES_MAX = 16 * 1024;
const INTERIM = /^HTTP\/1\.[01] 1(?!01)\d\d/;
const INTERIM_BEGINNING = "HTTP/1.x 1";
const CONTINUE_AT = 9;

export class ContinueFilter {
  #isAtHead = false;
  #held: Buffer | undefined;

  /** A request was sent: the next byte from the app starts a head. */
  expectHead(): void {
    this.#isAtHead = true;
    this.#held = undefined;
  }

  /** Returns the bytes that the parser gets now; undefined when there are none. */
  pass(chunk: Buffer): Buffer | undefined {
    if (!this.#isAtHead) return chunk;
    let rest = this.#held === undefined ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = undefined;
    const passed: Buffer[] = [];
    while (rest.length > 0) {
      const start = rest.toString("latin1", 0, KNOWN_AT);
      if (start.length < KNOWN_AT ? !mayBeInterim(start) : !INTERIM.test(start)) {
        this.#isAtHead = false;
        break;
      }
      const end = rest.indexOf("\r\n\r\n");
      if (end === -1) {
        if (rest.length <= HELD_BYTES_MAX && !hasBareLineFeed(rest)) {
          this.#held = rest;
          rest = EMPTY;
        } else this.#isAtHead = false;
        break;
      }
      const interim = rest.subarray(0, end + 4);
      if (interim.toString("latin1", CONTINUE_AT, KNOWN_AT) !== "100") passed.push(interim);
      rest = rest.subarray(end + 4);
    }
    if (rest.length > 0) passed.push(rest);
    return passed.length > 1 ? Buffer.concat(passed) : passed[0];
  }
}

const EMPTY = Buffer.alloc(0);

const mayBeInterim = (start: string): boolean => {
  for (let at = 0; at < Math.min(start.length, INTERIM_BEGINNING.length); at++) {
    if (INTERIM_BEGINNING[at] !== "x" && start[at] !== INTERIM_BEGINNING[at]) return false;
  }
  return true;
};

/** The parser refuses such a head at once, so there is no reason to wait for another end of it. */
const hasBareLineFeed = (bytes: Buffer): boolean => /(?<!\r)\n/.test(bytes.toString("latin1"));
