import { QueryClient } from "@tanstack/react-query";
import { mayRetry } from "../../core/api/retry.ts";
import { ApiError } from "./api-error.ts";

const RETRIES_MAX = 3;
const RETRY_MS = 1000;
const RETRY_MS_MAX = 15_000;
const STALE_MS = 5000;

/** Retries reads that can succeed later, and waits at least as long as the server requests. Changes are never retried automatically. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: STALE_MS,
        // Sends requests even if the browser is offline, because the server can run on the same machine.
        networkMode: "always",
        retry: (failures, error) =>
          failures < RETRIES_MAX && error instanceof ApiError && mayRetry(error.status, { isRepeatable: true }),
        retryDelay: (failures, error) => {
          const asked = error instanceof ApiError ? error.retryAfterMs : undefined;
          return asked ?? Math.min(RETRY_MS * 2 ** failures, RETRY_MS_MAX);
        },
      },
      mutations: { networkMode: "always", retry: false },
    },
  });
}
