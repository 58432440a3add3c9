import type { CompiledPolicy } from "../../policies/policy.ts";
import type { ManifestName } from "../manager.ts";

/*
 * An object from the API with the fields that a manifest can describe. `manager` is the name of the manifest that currently manages the
 * object.
 */

interface Stored {
  readonly manager?: ManifestName | undefined;
}

export interface StoredRole extends Stored {
  readonly kind: "Role";
  readonly name: string;
  readonly description?: string | undefined;
  /** Slugs. */
  readonly permissions: readonly string[];
}

export interface StoredNamespace extends Stored {
  readonly kind: "RatelimitNamespace";
  readonly name: string;
}

export interface StoredOverride extends Stored {
  readonly kind: "RatelimitOverride";
  readonly namespace: StoredNamespace;
  readonly identifier: string;
  readonly limit: number;
  readonly durationMs: number;
  readonly async: boolean;
}

/** An API and, if there is one, the policy of an app that accepts keys of the API. */
export interface StoredApi extends Stored {
  readonly kind: "ApiKeyPolicy";
  readonly apiId: string;
  readonly apiName: string;
  readonly policy?: CompiledPolicy | undefined;
  /** Names of the policy's rate-limit namespaces, by id. */
  readonly namespaceNames?: ReadonlyMap<string, string> | undefined;
}

export interface StoredKey extends Stored {
  readonly kind: "ApiKey";
  readonly apiId: string;
  readonly name?: string | undefined;
  readonly externalId?: string | undefined;
  /** Names of the roles. */
  readonly roles: readonly string[];
  /** Slugs that the key holds directly. */
  readonly permissions: readonly string[];
  readonly ratelimits: readonly {
    readonly name: string;
    readonly limit: number;
    readonly duration: number;
    readonly autoApply: boolean;
  }[];
  readonly credits?:
    | {
        readonly remaining: number;
        readonly refill?:
          | {
              readonly interval: "daily" | "monthly";
              readonly amount: number;
              readonly refillDay?: number | undefined;
            }
          | undefined;
      }
    | undefined;
  /** Unix ms. */
  readonly expires?: number | undefined;
}

export type StoredObject = StoredRole | StoredNamespace | StoredOverride | StoredApi | StoredKey;
