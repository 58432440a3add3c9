import { createContext, useContext } from "react";
import type { Api } from "./client.ts";

export const ApiContext = createContext<Api | undefined>(undefined);

/** Returns the API client for the workspace that the page shows. */
export function useApi(): Api {
  const api = useContext(ApiContext);
  if (api === undefined) throw new Error("useApi stands outside of the shell");
  return api;
}
