/*
 * What a procedure declares that the root key must be allowed: for the OpenAPI document, and for the test that tries each
 * procedure without each of them. The handler asks for the same with `call.require`, once it knows the id.
 */

export interface NeededPermission {
  /** The tuple with `*`, which always does. */
  readonly tuple: `${string}.*.${string}`;
  /** Whose id may stand for the `*`; absent where nothing but `*` will do. */
  readonly orFor?: "apiId" | "namespaceId" | "identityId";
  /** When it is needed at all, in words such as "with `recoverable`"; absent when always. */
  readonly when?: string;
}

const needed = (
  tuple: NeededPermission["tuple"],
  orFor: NeededPermission["orFor"],
  when: string | undefined,
): NeededPermission => ({
  tuple,
  ...(orFor === undefined ? {} : { orFor }),
  ...(when === undefined ? {} : { when }),
});

/** On the API that the call is about. */
export const onApi = (action: string, when?: string) => needed(`api.*.${action}`, "apiId", when);
/** On no API in particular. */
export const onApis = (action: string, when?: string) => needed(`api.*.${action}`, undefined, when);
/** On the rate-limit namespace that the call is about. */
export const onNamespace = (action: string, when?: string) => needed(`ratelimit.*.${action}`, "namespaceId", when);
/** On no rate-limit namespace in particular. */
export const onNamespaces = (action: string, when?: string) => needed(`ratelimit.*.${action}`, undefined, when);
/** On the identity that the call is about. */
export const onIdentity = (action: string, when?: string) => needed(`identity.*.${action}`, "identityId", when);
/** On no identity in particular. */
export const onIdentities = (action: string, when?: string) => needed(`identity.*.${action}`, undefined, when);
/** Roles and permissions, of which none has a tuple of its own. */
export const onRbac = (action: string, when?: string) => needed(`rbac.*.${action}`, undefined, when);

/** In Markdown: "`api.*.read_key` or `api.<apiId>.read_key`". */
export function describeNeeded({ tuple, orFor, when }: NeededPermission): string {
  const either = orFor === undefined ? `\`${tuple}\`` : `\`${tuple}\` or \`${tuple.replace("*", `<${orFor}>`)}\``;
  return when === undefined ? either : `${when}: ${either}`;
}
