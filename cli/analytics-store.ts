import type { AnalyticsAddress } from "../analytics/open.ts";
import { UsageError } from "./command.ts";

/** Returns the address of the analytics store from the options of `analyticsStore`. */
export function analyticsAddress(options: {
  readonly "analytics-url": string | undefined;
  readonly "analytics-reader-url": string | undefined;
  readonly "analytics-cluster": string | undefined;
}): AnalyticsAddress {
  const address = {
    url: options["analytics-url"],
    readerUrl: options["analytics-reader-url"],
    cluster: options["analytics-cluster"],
  };
  if (address.url === undefined && address.readerUrl !== undefined) {
    throw new UsageError("--analytics-reader-url requires --analytics-url, whose user writes the events");
  }
  return address;
}
