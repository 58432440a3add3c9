import type * as z from "zod";
import type { ImportedKey, KeyToImport } from "../../core/keys/import-keys.ts";
import { KEY_LENGTH_MAX } from "../../core/keys/key-hash.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import type { ManifestRule } from "../../core/manifests/policy-rule.ts";

/* What the files of another system contain: keys to import, skipped keys with reasons, drafts of rules, and notes. */

export interface FoundKey extends KeyToImport {
  /** Location of the key in the terms of the other system, such as `consumer alice, key 2`. */
  readonly from: string;
}

export interface OmittedKey {
  readonly from: string;
  readonly why: string;
}

/** A rule of an ApiKeyPolicy, in the form of a manifest. */
export type RuleDraft = z.input<typeof ManifestRule>;

export interface FoundRule {
  /** Location of the limit or denial in the terms of the other system, such as `route orders, rate-limiting`. */
  readonly from: string;
  readonly rule: RuleDraft;
}

export interface Found {
  readonly keys: readonly FoundKey[];
  readonly left: readonly OmittedKey[];
  /** Drafts of policy rules. The import shows them, but does not apply them. */
  readonly rules: readonly FoundRule[];
  /** Distinct notes about settings that the import ignores. */
  readonly notes: readonly string[];
  /** Number of keys that are so short that brute force could recover them from their hashes. */
  readonly short: number;
}

/**
 * Minimum length of a safe secret, about 128 bits in base58. A key that a person chose has less entropy at any length, but such keys cannot
 * be recognized.
 */
const SECRET_LENGTH_SAFE = 22;
/** Matches an HTTP field value (RFC 9110, 5.5) without leading and trailing spaces. */
const IN_A_HEADER = /^[!-~](?:[ -~]*[!-~])?$/;

/** Matches references to external values in other systems: `$env://`, `{vault://…}`, `${{ env "…" }}`. */
const REFERENCE = /^(?:\$(?:env|ENV|secret):\/\/|\{vault:\/\/|\$\{\{)/;

export class DiscoveredKeys implements Found {
  readonly keys: FoundKey[] = [];
  readonly left: OmittedKey[] = [];
  readonly rules: FoundRule[] = [];
  readonly #notes = new Set<string>();
  /** Location of each key, by hash. */
  readonly #seen = new Map<string, string>();
  short = 0;

  get notes(): readonly string[] {
    return [...this.#notes];
  }

  /** Adds a key whose plaintext is known. */
  add(from: string, secret: string | undefined, key: Omit<ImportedKey, "hash">): void {
    const why = problemOf(secret);
    if (secret === undefined || why !== undefined) {
      this.leave(from, why ?? "the file does not contain its plain text");
      return;
    }
    if (!this.#isNew(from, hashKey(secret))) return;
    if (secret.length < SECRET_LENGTH_SAFE) this.short += 1;
    this.keys.push({ from, secret, hash: undefined, key });
  }

  /** Adds a key for which only the SHA-256 hash in base64 is known. */
  addHash(from: string, hash: string, key: Omit<ImportedKey, "hash">): void {
    if (this.#isNew(from, hash)) this.keys.push({ from, secret: undefined, hash, key });
  }

  leave(from: string, why: string): void {
    this.left.push({ from, why });
  }

  /** Notes that the import ignores a plugin of a consumer. */
  notePlugin(name: string, { isLimit }: { readonly isLimit: boolean }): void {
    this.note(
      isLimit
        ? `${name} of consumers is not imported: set limits on the keys or identities, or overrides of a namespace`
        : `the plugin ${name} of consumers is not imported`,
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
    this.leave(from, `same key as ${twin}; a key has only one owner`);
    return false;
  }
}

function problemOf(secret: string | undefined): string | undefined {
  if (secret === undefined || secret === "") return "the file does not contain its plain text";
  if (REFERENCE.test(secret)) return "its value is a reference; replace it with the actual value";
  if (secret.length > KEY_LENGTH_MAX) return `it is longer than ${KEY_LENGTH_MAX} characters`;
  if (!IN_A_HEADER.test(secret)) {
    return "it contains a character that is invalid in a header, such as a line break, so it cannot be in use";
  }
  return undefined;
}
