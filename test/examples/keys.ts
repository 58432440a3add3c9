import { waitFor } from "../harness/wait.ts";

/* Keys for the tests of the examples. */

export interface IssuedKey {
  readonly key: string;
  readonly keyId: string;
}

/** Makes a key of one API, with the permission that the examples ask for unless the body says otherwise. `expires: 1` has expired. */
export type Issuer = (body: Readonly<Record<string, unknown>>) => Promise<IssuedKey>;

/** Makes an API by a root key that may do so, and keys in it. */
export async function issuerOf(apiUrl: string, rootKey: string): Promise<Issuer> {
  const call = async <Data>(path: string, body: unknown): Promise<Data> => {
    const response = await fetch(`${apiUrl}/v2/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as { data: Data };
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${JSON.stringify(answer)}`);
    return answer.data;
  };
  const { apiId } = await call<{ apiId: string }>("apis.createApi", { name: "reports" });
  return async ({ expires, ...body }) => {
    const soon = expires === 1 ? { expires: Date.now() + 1000 } : {};
    const made = { apiId, prefix: "acme", permissions: ["reports.read"], ...body, ...soon };
    const issued = await call<IssuedKey>("keys.createKey", made);
    if (expires === 1) {
      const code = async () => (await call<{ code: string }>("keys.verifyKey", { key: issued.key })).code;
      await waitFor("the key to expire", async () => (await code()) === "EXPIRED");
    }
    return issued;
  };
}
