const TOKEN = /^#token=([\w-]+)$/;

/**
 * The token of a sign-in link, taken out of the address when the page is loaded: it must not stay in the history, nor be sent twice because
 * a component was rendered twice.
 */
export const linkToken: string | undefined = takeToken();

function takeToken(): string | undefined {
  const [, token] = TOKEN.exec(location.hash) ?? [];
  if (token !== undefined) history.replaceState(history.state, "", location.pathname + location.search);
  return token;
}
