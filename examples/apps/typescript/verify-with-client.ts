import { Unkey } from "@unkey/api";
import { type Asked, DEADLINE_MS, keyIn, noKey, type Outcome, outcomeOf, unavailable } from "./outcome.ts";

const { POSTERN_API_URL = "http://127.0.0.1:8080", POSTERN_ROOT_KEY } = process.env;
if (!POSTERN_ROOT_KEY) throw new Error("set POSTERN_ROOT_KEY to a root key that has api.*.verify_key");

const client = new Unkey({
  serverURL: POSTERN_API_URL,
  rootKey: POSTERN_ROOT_KEY,
  timeoutMs: DEADLINE_MS,
  // Disables retries: by default the client retries for a long time, and its timeout applies to each attempt separately.
  retryConfig: { strategy: "none" },
});

/** Verifies the key from an Authorization header with the published client. */
export async function verify(authorization: string | undefined, asked: Asked): Promise<Outcome> {
  const key = keyIn(authorization);
  if (key === undefined) return noKey();
  try {
    const { data } = await client.keys.verifyKey({ key, ...asked });
    return outcomeOf(data);
  } catch (error) {
    return unavailable(error);
  }
}
