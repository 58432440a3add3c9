import { makeId } from "../../core/ids.ts";
import type { Deps } from "../deps.ts";

const ID_BYTES = 16;
const POOL_BYTES = ID_BYTES * 256;

/** Creates request ids. Random bytes are generated for 256 ids at a time, because that is the most expensive part. */
export function createRequestIds({ randomBytes }: Pick<Deps, "randomBytes">): () => string {
  let pool = new Uint8Array(0);
  let used = 0;
  return () => {
    if (used === pool.length) {
      pool = Uint8Array.from(randomBytes(POOL_BYTES));
      used = 0;
    }
    used += ID_BYTES;
    return makeId("request", pool.subarray(used - ID_BYTES, used));
  };
}
