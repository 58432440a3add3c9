import { NAVIGATION } from "../../dashboard/shell/navigation.ts";
import type { Dashboard } from "./harness.ts";

/** The addresses of all pages in the navigation, so that a page that is new is tried too. */
export const EVERY_PAGE: readonly string[] = NAVIGATION.flatMap(({ entries }) => entries.map(({ to }) => String(to)));

/** Something for every page to show, with texts that are long, wide, empty or look like code. */
export async function fillWorkspace({ call }: Dashboard): Promise<void> {
  const texts = ["acme", "ünïcode 🙂 名前", "<b>bold</b>&amp;", "a-name-without-any-place-to-break-it-".repeat(5)];
  const { apiId } = await call("apis.createApi", { name: `payments ${texts[3]}` });
  for (const [index, text] of texts.entries()) {
    const externalId = index === 3 ? text : `customer-${index}`;
    const ratelimits = [{ name: "requests", limit: 10 + index, duration: 60_000 }];
    await call("identities.createIdentity", { externalId, ratelimits, meta: { note: texts[2] } });
    await call("keys.createKey", { apiId, name: text, externalId, meta: { note: texts[2] } });
    await call("permissions.createPermission", { name: `Read ${index}`, slug: `documents.read.${index}` });
    await call("permissions.createRole", { name: `role.${index}`, description: text });
    await call("ratelimit.limit", { namespace: `emails-${index}`, identifier: text, limit: 5, duration: 60_000 });
  }
  const override = { namespace: "emails-0", identifier: "acme*", limit: 50, duration: 60_000 };
  await call("ratelimit.setOverride", override);
  // After `default` in the order of names, so that pages open in that one.
  await call("admin.createWorkspace", { name: `team-${"w".repeat(58)}` });
}
