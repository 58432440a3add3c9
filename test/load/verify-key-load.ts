import type { Environment } from "./environment.ts";
import { NEVER_REACHED } from "./gate-load.ts";
import type { Contestant } from "./measure.ts";
import { contestant, type SectionOptions } from "./section.ts";
import type { Running } from "./stack.ts";

type Keys = ReadonlyArray<{ key: string }>;

/** What the measurements of `keys.verifyKey` have in common: keys without a limit, keys with a strict one, and verifications of them. */
export async function verifyKeyLoad(environment: Environment, options: SectionOptions) {
  const ratelimits = [{ name: "bench", limit: NEVER_REACHED, duration: 3_600_000, autoApply: true }];
  const plain: Keys = await environment.createKeys(1000);
  const limited: Keys = await environment.createKeys(1000, { ratelimits });
  const headers = { authorization: `Bearer ${environment.rootKey}`, "content-type": "application/json" };
  const verify = (keys: Keys): ((name: string, running: Running) => Contestant) =>
    contestant(options, ({ url }) => ({
      url: `${url}/v2/keys.verifyKey`,
      method: "POST",
      headers,
      bodies: keys.map(({ key }) => JSON.stringify({ key })),
    }));
  /** Nine verifications and one `keys.createKey` in turn, as a client with one pool of connections sends them. */
  const mixed = contestant(options, ({ url }) => {
    const calls = plain.slice(0, 9).map(({ key }) => ({ path: "/v2/keys.verifyKey", body: { key } as object }));
    calls.push({ path: "/v2/keys.createKey", body: { apiId: environment.apiId } });
    const [paths, bodies] = [calls.map(({ path }) => path), calls.map(({ body }) => JSON.stringify(body))];
    return { url, method: "POST", headers, paths, bodies };
  });
  return { plain, limited, headers, verify, mixed };
}
