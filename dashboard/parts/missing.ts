/** Why a person may not do something: the tuple that the role lacks; undefined when it may. For `Button`'s `unusable`. */
export function missing(may: (tuple: string) => boolean, ...tuples: readonly string[]): string | undefined {
  const lacking = tuples.filter((tuple) => !may(tuple));
  return lacking.length === 0 ? undefined : `Your role lacks ${lacking.join(" and ")}.`;
}
