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
  return { plain, limited, headers, verify };
}
