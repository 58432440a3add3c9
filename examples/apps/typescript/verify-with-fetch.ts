import {
  type Asked,
  DEADLINE_MS,
  keyIn,
  noKey,
  type Outcome,
  outcomeOf,
  unavailable,
  type Verification,
} from "./outcome.ts";

const { POSTERN_API_URL = "http://127.0.0.1:8080", POSTERN_ROOT_KEY } = process.env;
if (!POSTERN_ROOT_KEY) throw new Error("set POSTERN_ROOT_KEY to a root key that has api.*.verify_key");

/** Verifies the key from an Authorization header with one fetch call and no library. */
export async function verify(authorization: string | undefined, asked: Asked): Promise<Outcome> {
  const key = keyIn(authorization);
  if (key === undefined) return noKey();
  try {
    const response = await fetch(`${POSTERN_API_URL}/v2/keys.verifyKey`, {
      method: "POST",
      headers: { authorization: `Bearer ${POSTERN_ROOT_KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ key, ...asked }),
      // The timeout signal also aborts reading the body.
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    const answer = (await response.json()) as { data?: Verification; error?: { title: string; detail: string } };
    // The response for a rejected key also has status 200. Any other status means that the call itself failed, for example because the root
    // key lacks a permission.
    if (answer.data === undefined)
      throw new Error(`${response.status} ${answer.error?.title}: ${answer.error?.detail}`);
    return outcomeOf(answer.data);
  } catch (error) {
    return unavailable(error);
  }
}
