import { hashKey } from "../../../core/keys/key-string.ts";
import type { KeyView } from "../../../core/verification/key-view.ts";
import type { Lookup } from "../../../edge/projection/contract.ts";
import { takeOverMigratedKey } from "../../domain/keys/migrated-keys.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import type { CallNeeding } from "../../procedure.ts";
import { CallVerification } from "./call-verification.ts";
import type { Body } from "./verify-schemas.ts";

/** Required on the API of the key: the caller learns nothing about a key of another API. */
export const VERIFY_KEY = onApi("verify_key");

type VerifyCall = CallNeeding<Body, typeof VERIFY_KEY>;

/** A call of `keys.verifyKey` for edge/verification: its root key determines which keys it may see, its body the requested checks. */
export class KeyVerification extends CallVerification {
  readonly #call: VerifyCall;

  constructor(call: VerifyCall) {
    super(call.body, call.caller, call.origin.clientIp);
    this.#call = call;
  }

  find(): Lookup<KeyView> | Promise<Lookup<KeyView>> {
    const hash = hashKey(this.#call.body.key);
    const found = this.#call.deps.projection.findKey(this.workspaceId, hash);
    return found instanceof Promise ? found.then((late) => this.#orMigrated(late, hash)) : found;
  }

  protected mayVerify(apiId: string): boolean {
    return this.#call.holds(VERIFY_KEY, apiId);
  }

  /** Rewrites an imported key under its own hash on first use (api-v2.md section 12.4). */
  async #orMigrated(lookup: Lookup<KeyView>, hash: string): Promise<Lookup<KeyView>> {
    const { body, deps } = this.#call;
    const { key, migrationId } = body;
    if (lookup.status !== "absent" || migrationId === undefined) return lookup;
    const { workspaceId } = this;
    const presented = { workspaceId, migrationId, key, hash, mayVerify: (apiId: string) => this.mayVerify(apiId) };
    return (await takeOverMigratedKey(deps, presented)) ? deps.projection.findKey(workspaceId, hash) : lookup;
  }
}
