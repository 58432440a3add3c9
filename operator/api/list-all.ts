import type { Data, Input } from "../../core/api/procedures.ts";
import type { ApiClient } from "./client.ts";

/** List procedures whose results are read completely and repeatedly. */
type FullList = "policies.listStatus" | "managed.listDigests";

const PAGE = 500;
/** Maximum number of pages, which is enough for 100,000 items. A longer list is treated as endless. */
const PAGES_MAX = 200;

/** Returns all items of a list. Throws `ApiUnavailable`, or another error if the API rejects the call or the list is endless. */
export async function listAll<P extends FullList>(
  api: ApiClient,
  list: P,
  body: Omit<Input<P>, "limit" | "cursor">,
): Promise<Data<P>[number][]> {
  const items: Data<P>[number][] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const response = await api.call(list, { ...body, limit: PAGE, cursor } as unknown as Input<P>);
    if (response.refusal !== undefined) throw new Error(`${response.refusal.kind}: ${response.refusal.detail}`);
    for (const item of response.data) items.push(item);
    cursor = response.next;
    if (cursor === undefined) return items;
  }
  throw new Error(`${list} has more than ${PAGES_MAX} pages`);
}
