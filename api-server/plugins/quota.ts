import type { Deps } from "../deps.ts";
import { countQuota } from "../domain/ratelimits/quota.ts";
import type { ApiReply } from "./api-request.ts";

/** Counts one request against the workspace's quota and sets the quota headers. Throws PublicError 429 for a request beyond the quota. */
export async function chargeQuota(
  deps: Deps,
  of: { readonly workspaceId: string; readonly quotaPerMinute: number },
  reply: Pick<ApiReply, "header">,
): Promise<void> {
  const { headers, refusal } = await countQuota(deps, of);
  for (let at = 0; at < headers.length; at += 2) reply.header(headers[at] as string, headers[at + 1]);
  if (refusal !== undefined) throw refusal;
}
