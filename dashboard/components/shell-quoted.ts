/** Quotes an argument for a shell so that it stays one argument, whatever it contains. */
export const shellQuoted = (argument: string): string =>
  /^[\w./:@=+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
