import { randomBytes } from "node:crypto";

export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  readonly body: any;
}

/** An api-server as its customer sees it. A call throws when there is no response. */
export interface Api {
  readonly url: string;
  call(path: string, body: unknown, rootKey?: string): Promise<Reply>;
  /** The same for a success: throws when the status is not 200, else returns `data`. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  data(path: string, body: unknown, rootKey?: string): Promise<any>;
  /** The code that keys.verifyKey returns. */
  code(key: string): Promise<string>;
  /** The result of the readiness probe. */
  isReady(): Promise<boolean>;
  /** The degradations that it reports although it serves. */
  degradations(): Promise<string[]>;
  /** Whether it is ready and has no degradation: the store answers, and changes arrive. */
  isWhole(): Promise<boolean>;
}

/** A customer of the api-server at `url`; a call without a root key uses `ownRootKey`. */
export function makeClient(url: string, ownRootKey: string): Api {
  const call = async (path: string, body: unknown, rootKey = ownRootKey): Promise<Reply> => {
    const response = await fetch(`${url}/v2/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  };
  const data: Api["data"] = async (path, body, rootKey) => {
    const reply = await call(path, body, rootKey);
    if (reply.status !== 200) throw new Error(`${path} answered ${reply.status}: ${JSON.stringify(reply.body)}`);
    return reply.body.data;
  };
  const degradations: Api["degradations"] = async () => {
    const answer = await fetch(`${url}/readyz?verbose`);
    const found = (await answer.json()) as { degradations: Array<{ reason: string }> };
    return found.degradations.map(({ reason }) => reason);
  };
  return {
    url,
    call,
    data,
    code: async (key) => (await data("keys.verifyKey", { key })).code,
    isReady: async () => (await fetch(`${url}/readyz`)).status === 200,
    degradations,
    isWhole: async () => (await fetch(`${url}/readyz`)).status === 200 && (await degradations()).length === 0,
  };
}

export interface TestKey {
  readonly keyId: string;
  readonly key: string;
}

/** An API and a key in it. */
export async function makeKey(api: Api, body: object = {}): Promise<TestKey & { apiId: string }> {
  const { apiId } = await api.data("apis.createApi", { name: `api-${randomBytes(4).toString("hex")}` });
  return { apiId, ...(await api.data("keys.createKey", { apiId, ...body })) };
}
