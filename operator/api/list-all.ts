import type { Data, Input } from "../../core/api/procedures.ts";
import type { ApiClient } from "./client.ts";

/** The lists that are read whole, again and again. */
type FullList = "policies.listStatus" | "managed.listDigests";

const PAGE = 500;
/** 100,000 items. Past this a list is not believed to end. */
const PAGES_MAX = 200;

/** Returns all items of a list. Throws `ApiUnavailable`, and when the API refuses or the list does not end. */
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
