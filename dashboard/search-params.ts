/* Search parameters of a URL. Anyone may have written the URL, so invalid values are omitted. */

type Texts<Name extends string> = { readonly [N in Name]?: string };

/** Maximum length of a parameter; a longer one is cut off. */
const LENGTH_MAX = 255;

/**
 * Returns the parameters with these names, as text. Omits parameters with control characters. The router parses `?search=123` as a number;
 * this function converts the number back to text.
 */
export function textsIn<Name extends string>(
  search: Readonly<Record<string, unknown>>,
  ...names: readonly Name[]
): Texts<Name> {
  const found = names.flatMap((name) => {
    const value = search[name];
    const text = typeof value === "number" ? String(value) : value;
    const isText = typeof text === "string" && text !== "" && !/\p{Cc}/u.test(text);
    return isText ? [[name, text.slice(0, LENGTH_MAX)] as const] : [];
  });
  return Object.fromEntries(found) as Texts<Name>;
}

/** Returns the parameter if it is one of the choices. */
export function choiceIn<Name extends string, Choice extends string>(
  search: Readonly<Record<string, unknown>>,
  name: Name,
  choices: readonly Choice[],
): { readonly [N in Name]?: Choice } {
  const chosen = choices.find((choice) => choice === search[name]);
  return (chosen === undefined ? {} : { [name]: chosen }) as { readonly [N in Name]?: Choice };
}

/**
 * Returns the search parameters for `navigate`: the current parameters, with the given ones set. A parameter that is set to an empty text
 * is removed.
 */
export const withTexts =
  (change: Readonly<Record<string, string>>) =>
  <Search extends object>(before: Search): Search =>
    Object.fromEntries(
      Object.entries({ ...before, ...change }).filter(([name, value]) => !(name in change && value === "")),
    ) as Search;

/** The same for one text. */
export const withText = (name: string, text: string) => withTexts({ [name]: text });
