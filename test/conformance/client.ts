import { Unkey } from "@unkey/api";
import { HTTPClient } from "@unkey/api/lib/http.js";

/*
 * The published client, called by the names of procedures, together with the bytes that came over the wire.
 */

export interface Called {
  /** What the client returns to its caller. */
  readonly result: unknown;
  /** The response body as received. */
  readonly sent: unknown;
}

// biome-ignore lint/suspicious/noExplicitAny: methods are looked up by name.
type Methods = Record<string, Record<string, (body: unknown) => Promise<any>>>;

/** Retries are off, because a test needs the first response. */
export function makeClient(serverURL: string, rootKey: string): { client: Unkey; call: Call } {
  let sent: unknown;
  const fetcher: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const text = await response.clone().text();
    sent = JSON.parse(text);
    return response;
  };
  const httpClient = new HTTPClient({ fetcher: fetcher as never });
  const client = new Unkey({ serverURL, rootKey, httpClient, retryConfig: { strategy: "none" } });
  const call: Call = async (path, body) => {
    const [service = "", method = ""] = path.split(".");
    const found = (client as unknown as Methods)[service]?.[method];
    if (found === undefined) throw new Error(`the client has no ${path}`);
    const result = await found.call((client as unknown as Methods)[service], body);
    // A list is returned as pages to iterate over; this is the first one.
    return { result: result[Symbol.asyncIterator] === undefined ? result : result.result, sent };
  };
  return { client, call };
}

export type Call = (path: string, body: unknown) => Promise<Called>;

/** Every procedure that the client has: `keys.createKey` and so on. */
export function listProcedures(): string[] {
  const membersOf = (prototype: object): Array<[string, PropertyDescriptor]> =>
    Object.entries(Object.getOwnPropertyDescriptors(prototype)).filter(([name]) => name !== "constructor");
  const client = new Unkey({ rootKey: "none" }) as unknown as Record<string, object>;
  const services = membersOf(Unkey.prototype).filter(([, { get }]) => get !== undefined);
  return services.flatMap(([service]) =>
    membersOf(Object.getPrototypeOf(client[service]))
      .filter(([, { value }]) => typeof value === "function")
      .map(([method]) => `${service}.${method}`),
  );
}
