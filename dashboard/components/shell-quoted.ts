/** An argument of a command for a shell: whatever it contains, it stays one argument. */
export const shellQuoted = (argument: string): string =>
  /^[\w./:@=+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
