import { randomBytes } from "node:crypto";
import { isOfV1, requestOf } from "../../api-server/test/request.ts";

export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  readonly body: any;
}

/** An api-server as seen by its customer. A call throws without a response. */
export interface Api {
  readonly url: string;
  /** Calls a procedure; a path such as `v1/apis.getApi` calls v1. */
  call(path: string, body: unknown, rootKey?: string): Promise<Reply>;
  /** Calls a procedure and returns `data` (v1: the complete body). Throws if the status is not 200 or 202. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  data(path: string, body: unknown, rootKey?: string): Promise<any>;
  /** Returns the code of keys.verifyKey. */
  code(key: string): Promise<string>;
  /** Returns the result of the readiness probe. */
  isReady(): Promise<boolean>;
  /** Returns the reported degradations. */
  degradations(): Promise<string[]>;
  /** Whether the api-server is ready without a degradation. */
  isComplete(): Promise<boolean>;
}

/** Returns a client of the api-server at `url` that uses `ownRootKey` by default. */
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

/** Creates an API with a key. */
export async function makeKey(api: Api, body: object = {}): Promise<TestKey & { apiId: string }> {
  const { apiId } = await api.data("apis.createApi", { name: `api-${randomBytes(4).toString("hex")}` });
  return { apiId, ...(await api.data("keys.createKey", { apiId, ...body })) };
}
