/* Text parameters of an address, such as the filters of a list. */

type Texts<Name extends string> = { readonly [N in Name]?: string };

/**
 * Returns the text parameters with these names. Anyone may have written the address, so values that are not text are omitted. The router
 * parses `?search=123` as a number.
 */
export function textsIn<Name extends string>(
  search: Readonly<Record<string, unknown>>,
  ...names: readonly Name[]
): Texts<Name> {
  const found = names.flatMap((name) => {
    const value = search[name];
    const text = typeof value === "number" ? String(value) : value;
    return typeof text === "string" && text !== "" ? [[name, text] as const] : [];
  });
  return Object.fromEntries(found) as Texts<Name>;
}

/** Returns the search parameters for `navigate`: the current ones with this text set, or without it if the text is empty. */
export const withText =
  <Name extends string>(name: Name, text: string) =>
  <Search extends Texts<Name>>({ [name]: _, ...others }: Search): Search =>
    (text === "" ? others : { ...others, [name]: text }) as Search;
