import type { Cluster } from "./cluster.ts";
import { type Place, RELEASE } from "./installation.ts";

/* Requests from inside the cluster: from the pod `client` of a namespace, by the names that pods there have for what they call. */

export interface Asked {
  readonly key?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Inside {
  /** Returns the status of the answer. `url` may be a path of the app `orders`. */
  ask(url: string, options?: Asked): Promise<number>;
  /** Calls a procedure of the API; throws what it answers when that is no success. */
  call<Data>(procedure: string, body: object): Promise<Data>;
}

/** `rootKey` is asked for at each call of the API. */
export function insideOf(place: Place, options: { namespace: string; rootKey: () => string }): Inside {
  const run = (script: string): Promise<string> => runIn(place.cluster, options.namespace, script);
  return {
    ask: async (url, { key, method = "GET", headers: more = {} } = {}) => {
      const headers = key === undefined ? more : { ...more, authorization: `Bearer ${key}` };
      const whole = url.startsWith("/") ? `http://orders${url}` : url;
      const init = JSON.stringify({ method, headers });
      return Number(await run(`fetch(${JSON.stringify(whole)}, ${init}).then((r) => console.log(r.status))`));
    },
    call: async <Data>(procedure: string, body: object) => {
      const request = {
        method: "POST",
        headers: { authorization: `Bearer ${options.rootKey()}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      };
      const url = JSON.stringify(`http://${RELEASE}-api-server.${place.namespace}/v2/${procedure}`);
      const text = await run(
        `fetch(${url}, ${JSON.stringify(request)}).then(async (r) => console.log(await r.text()))`,
      );
      const response = JSON.parse(text) as { data?: Data };
      if (response.data === undefined) throw new Error(`${procedure}: ${text}`);
      return response.data;
    },
  };
}

const runIn = (cluster: Cluster, namespace: string, script: string): Promise<string> =>
  cluster.kubectl(["-n", namespace, "exec", "client", "--", "node", "-e", script]);
