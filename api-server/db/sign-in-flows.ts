import type { Queryable } from "../../postgres/queryable.ts";

/** A sign-in that is in progress at an identity provider. */
export interface SignInFlow {
  readonly browserHash: string;
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
  readonly returnTo: string;
  readonly expiresAt: number;
}

/**
 * Maximum number of expired flows that the start of a flow removes. It is greater than 1, so that the table shrinks again after many flows
 * were started at the same time.
 */
const EXPIRED_REMOVED_MAX = 10;

/**
 * Inserts a flow, and removes some that have expired. Unauthenticated clients can start sign-ins, so expired flows must not accumulate
 * until the next retention run. The table therefore has about as many rows as flows are started during the lifetime of one flow, or fewer.
 */
export async function insertSignInFlow(db: Queryable, flow: SignInFlow, nowMs: number): Promise<void> {
  const text = `with expired as (
                  delete from sign_in_flows
                   where browser_hash in (select f.browser_hash from sign_in_flows f where f.expires_at < $7
                                           order by f.expires_at limit $8 for update skip locked))
                insert into sign_in_flows (browser_hash, state, nonce, code_verifier, return_to, expires_at)
                values ($1, $2, $3, $4, $5, $6)`;
  const { browserHash, state, nonce, codeVerifier, returnTo, expiresAt } = flow;
  const values = [browserHash, state, nonce, codeVerifier, returnTo, expiresAt, nowMs, EXPIRED_REMOVED_MAX];
  await db.query({ name: "insert-sign-in-flow", text, values });
}

/**
 * Removes and returns a flow that this browser has started with this state. A wrong state does not remove the flow: otherwise, another site
 * could cancel a sign-in by sending the browser to the callback with an arbitrary state.
 */
export async function takeSignInFlow(
  db: Queryable,
  { browserHash, state, nowMs }: { browserHash: string; state: string; nowMs: number },
): Promise<Omit<SignInFlow, "browserHash" | "expiresAt"> | undefined> {
  const text = `delete from sign_in_flows f
                 where f.browser_hash = $1 and f.state = $2 and f.expires_at >= $3
             returning f.state, f.nonce, f.code_verifier as "codeVerifier", f.return_to as "returnTo"`;
  const { rows } = await db.query<Omit<SignInFlow, "browserHash" | "expiresAt">>({
    name: "take-sign-in-flow",
    text,
    values: [browserHash, state, nowMs],
  });
  return rows[0];
}
