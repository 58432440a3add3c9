import type { ImportedKey, KeyToImport } from "../../core/keys/import-keys.ts";
import { KEY_LENGTH_MAX } from "../../core/keys/key-hash.ts";
import { hashKey } from "../../core/keys/key-string.ts";

/* What was found in the files of another system: keys that can be taken over, others that cannot and why, and what is worth knowing. */

export interface FoundKey extends KeyToImport {
  /** Where it stands, in that system's words: `consumer alice, key 2`. */
  readonly from: string;
}

export interface LeftKey {
  readonly from: string;
  readonly why: string;
}

export interface Found {
  readonly keys: readonly FoundKey[];
  readonly left: readonly LeftKey[];
  /** What is not a key and is not taken over, each once. */
  readonly notes: readonly string[];
  /** Keys so short that somebody who has the store could find them out from their hashes. */
  readonly short: number;
}

/** Some 128 bits in base58. A key that a person made up has less in any length, which cannot be seen here. */
const SECRET_LENGTH_SAFE = 22;
/** What a header field can carry (RFC 9110, 5.5), without blanks at its ends. */
const IN_A_HEADER = /^[!-~](?:[ -~]*[!-~])?$/;

/** Where other systems let a value stand elsewhere: `$env://`, `{vault://…}`, `${{ env "…" }}`. */
const REFERENCE = /^(?:\$(?:env|ENV|secret):\/\/|\{vault:\/\/|\$\{\{)/;

export class DiscoveredKeys implements Found {
  readonly keys: FoundKey[] = [];
  readonly left: LeftKey[] = [];
  readonly #notes = new Set<string>();
  /** By hash: where the key with it stands. */
  readonly #seen = new Map<string, string>();
  short = 0;

  get notes(): readonly string[] {
    return [...this.#notes];
  }

  /** A key whose plain text is there. */
  add(from: string, secret: string | undefined, key: Omit<ImportedKey, "hash">): void {
    const why = faultOf(secret);
    if (secret === undefined || why !== undefined) {
      this.leave(from, why ?? "its plain text is not in the file");
      return;
    }
    if (!this.#isNew(from, hashKey(secret))) return;
    if (secret.length < SECRET_LENGTH_SAFE) this.short += 1;
    this.keys.push({ from, secret, hash: undefined, key });
  }

  /** A key of which only the SHA-256 in base64 is there. */
  addHash(from: string, hash: string, key: Omit<ImportedKey, "hash">): void {
    if (this.#isNew(from, hash)) this.keys.push({ from, secret: undefined, hash, key });
  }

  leave(from: string, why: string): void {
    this.left.push({ from, why });
  }

  /** A plugin of consumers that has no place here. */
  notePlugin(name: string, { isLimit }: { readonly isLimit: boolean }): void {
    this.note(
      isLimit
        ? `${name} of consumers is not taken over: set limits on the keys or identities, or overrides of a namespace`
        : `the plugin ${name} of consumers is not taken over`,
    );
  }

  note(text: string): void {
    this.#notes.add(text);
  }

  #isNew(from: string, hash: string): boolean {
    const twin = this.#seen.get(hash);
    if (twin === undefined) {
      this.#seen.set(hash, from);
      return true;
    }
    this.leave(from, `is the same key as ${twin}, and a key has one owner`);
    return false;
  }
}

function faultOf(secret: string | undefined): string | undefined {
  if (secret === undefined || secret === "") return "its plain text is not in the file";
  if (REFERENCE.test(secret)) return "its value is a reference to another place: put the value itself into the file";
  if (secret.length > KEY_LENGTH_MAX) return `it is longer than ${KEY_LENGTH_MAX} characters`;
  if (!IN_A_HEADER.test(secret)) {
    return "it has a character or an end that no header can carry, such as a line break, so it cannot be in use";
  }
  return undefined;
}
