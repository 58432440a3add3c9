import type { Case, ResponsePlan } from "./case.ts";

/** Each attempt needs a connection, and on a busy machine some are slow. */
const SHRINK_MS = 20_000;

/**
 * Returns a smaller case that still fails: sends everything in one piece if that is enough, then removes bytes from what the client
 * and the app send, in halves, quarters and so on. The expectations about sound requests are dropped if the case still fails without.
 */
export async function shrink(found: Case, fails: (smaller: Case) => Promise<boolean>): Promise<Case> {
  const untilMs = performance.now() + SHRINK_MS;
  let smallest = found;
  const attempt = async (smaller: Case): Promise<boolean> => {
    if (performance.now() > untilMs || !(await fails(smaller))) return false;
    smallest = smaller;
    return true;
  };
  await attempt({ ...smallest, requests: undefined, tunnel: undefined });
  await attempt({ ...smallest, client: [smallest.client.join("")] });
  for (const [id, plan] of Object.entries(smallest.responses)) {
    const { [id]: _, ...rest } = smallest.responses;
    if (!(await attempt({ ...smallest, responses: rest }))) {
      await attempt({
        ...smallest,
        responses: { ...smallest.responses, [id]: { ...plan, pieces: [plan.pieces.join("")] } },
      });
    }
  }
  // The sound requests of a case are not shortened, because they would become other requests.
  if (smallest.requests === undefined && smallest.client.length === 1) {
    await shrinkText(smallest.client[0] ?? "", (text) => attempt({ ...smallest, client: [text] }));
  }
  for (const [id, plan] of Object.entries(smallest.responses)) {
    if (plan.pieces.length !== 1 || plan.expect === "whole") continue;
    const withText = (text: string): ResponsePlan => ({ ...plan, pieces: [text] });
    await shrinkText(plan.pieces[0] ?? "", (text) =>
      attempt({ ...smallest, responses: { ...smallest.responses, [id]: withText(text) } }),
    );
  }
  return smallest;
}

async function shrinkText(text: string, attempt: (shorter: string) => Promise<boolean>): Promise<void> {
  let current = text;
  for (let size = current.length >> 1; size >= 1; size >>= 1) {
    for (let at = 0; at < current.length; ) {
      const shorter = current.slice(0, at) + current.slice(at + size);
      if (await attempt(shorter)) current = shorter;
      else at += size;
    }
  }
}
