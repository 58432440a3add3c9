import type { Environment } from "./environment.ts";
import { NEVER_REACHED } from "./gate-load.ts";
import type { LoadRequest } from "./generator.ts";
import type { Contestant } from "./measure.ts";
import { contestant, type SectionOptions } from "./section.ts";
import type { Running } from "./stack.ts";

type Contesting = (name: string, running: Running) => Contestant;

/** Each tenth call of the mixed load is an ordinary one. */
const ORDINARY_EVERY = 10;

/** The calls whose cost `verifyKey`, `raw` and `--against` measure, each with `count` keys in turn. */
export async function verifyKeyLoad(environment: Environment, options: SectionOptions, count: number) {
  const limit = { name: "bench", limit: NEVER_REACHED, duration: 3_600_000 };
  const plain = await environment.keys(count);
  const limited = await environment.keys(count, { ratelimits: [{ ...limit, autoApply: true }] });
  const headers = { authorization: `Bearer ${environment.rootKey}`, "content-type": "application/json" };
  const calling = (requests: readonly LoadRequest[]): Contesting =>
    contestant(options, ({ url }) => ({ url, method: "POST", headers, requests }));
  const call = (procedure: string, body: object): LoadRequest => ({
    path: `/v2/${procedure}`,
    body: JSON.stringify(body),
  });
  const verifications = plain.map(({ key }) => call("keys.verifyKey", { key }));
  const creation = call("keys.createKey", { apiId: environment.apiId });
  return {
    plain,
    limited,
    headers,
    verifyPlain: calling(verifications),
    verifyLimited: calling(limited.map(({ key }) => call("keys.verifyKey", { key }))),
    limit: calling(
      plain.map(({ keyId }) => {
        const { name, ...rest } = limit;
        return call("ratelimit.limit", { namespace: name, identifier: keyId, ...rest });
      }),
    ),
    /** Nine verifications and one `keys.createKey` in turn, as a client with one pool of connections sends them. */
    mixed: calling(
      Array.from({ length: Math.max(count, ORDINARY_EVERY) }, (_, n) =>
        n % ORDINARY_EVERY === 0 ? creation : (verifications[n % count] as LoadRequest),
      ),
    ),
  };
}
