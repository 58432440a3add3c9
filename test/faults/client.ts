import { randomBytes } from "node:crypto";
import { isOfV1, requestOf } from "../../api-server/test/request.ts";

export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  readonly body: any;
}

/** An api-server as its customer sees it. A call throws when there is no response. */
export interface Api {
  readonly url: string;
  /** A path such as `v1/apis.getApi` is one of v1. */
  call(path: string, body: unknown, rootKey?: string): Promise<Reply>;
  /** The same for a success: throws when the status is not 200 or 202, else returns `data`; of v1 the whole body. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  data(path: string, body: unknown, rootKey?: string): Promise<any>;
  /** The code that keys.verifyKey returns. */
  code(key: string): Promise<string>;
  /** The result of the readiness probe. */
  isReady(): Promise<boolean>;
  /** The degradations that it reports although it serves. */
  degradations(): Promise<string[]>;
  /** Whether it is ready and has no degradation: the store answers, and changes arrive. */
  isComplete(): Promise<boolean>;
}

/** A customer of the api-server at `url`; a call without a root key uses `ownRootKey`. */
export function makeClient(url: string, ownRootKey: string): Api {
  const call = async (path: string, body: unknown, rootKey = ownRootKey): Promise<Reply> => {
    const request = requestOf(path, body);
    const response = await fetch(`${url}${request.url}`, {
      method: request.method,
      headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
      body: request.payload ?? null,
    });
    return { status: response.status, body: await response.json() };
  };
  const data: Api["data"] = async (path, body, rootKey) => {
    const reply = await call(path, body, rootKey);
    if (reply.status !== 200 && reply.status !== 202)
      throw new Error(`${path} answered ${reply.status}: ${JSON.stringify(reply.body)}`);
    return isOfV1(path) ? reply.body : reply.body.data;
  };
  const degradations: Api["degradations"] = async () => {
    const response = await fetch(`${url}/readyz?verbose`);
    const found = (await response.json()) as { degradations: Array<{ reason: string }> };
    return found.degradations.map(({ reason }) => reason);
  };
  return {
    url,
    call,
    data,
    code: async (key) => (await data("keys.verifyKey", { key })).code,
    isReady: async () => (await fetch(`${url}/readyz`)).status === 200,
    degradations,
    isComplete: async () => (await fetch(`${url}/readyz`)).status === 200 && (await degradations()).length === 0,
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
