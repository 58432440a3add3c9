/* Texts that the search of an address has, such as what a list is narrowed to. */

type Texts<Name extends string> = { readonly [N in Name]?: string };

/** Those of these names. Anybody may have written the address, so what is no text is left out; the router reads `?search=123` as a number. */
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

/** What to give `navigate` as its search: the one of now with this text, or without it when it is empty. */
export const withText =
  <Name extends string>(name: Name, text: string) =>
  <Search extends Texts<Name>>({ [name]: _, ...others }: Search): Search =>
    (text === "" ? others : { ...others, [name]: text }) as Search;
