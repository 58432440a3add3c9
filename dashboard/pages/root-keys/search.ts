const STATES = ["active", "disabled", "expired"] as const;

export interface RootKeySearch {
  /** Part of the name, id or start. */
  readonly search?: string;
  readonly environment?: string;
  readonly state?: (typeof STATES)[number];
  /** Whose details are open. */
  readonly rootKey?: string;
}

const textOf = <Name extends string>(name: Name, value: unknown): { readonly [N in Name]?: string } =>
  typeof value === "string" && value !== "" ? ({ [name]: value } as { readonly [N in Name]: string }) : {};

/** What the address says, without what it may not. */
export function readSearch(search: Record<string, unknown>): RootKeySearch {
  const state = STATES.find((one) => one === search.state);
  return {
    ...textOf("search", search.search),
    ...textOf("environment", search.environment),
    ...textOf("rootKey", search.rootKey),
    ...(state === undefined ? {} : { state }),
  };
}
